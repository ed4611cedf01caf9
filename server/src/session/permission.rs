//! Who may send which command.

use protocol::Code;
use protocol::message::Role;
use sim::{CharacterId, Command};

use crate::location::character_of;

/// Whether a session may send a command at all: the table of spec 4.3, then the ranges.
///
/// # Errors
/// The code of the refusal.
pub(crate) fn may_send(role: Role, own: &[CharacterId], command: &Command) -> Result<(), Code> {
    let of_players = matches!(
        command,
        Command::MoveTo { .. } | Command::Stop { .. } | Command::Talk { .. } | Command::Application { .. }
    );
    let of_roster = matches!(command, Command::Join { .. } | Command::Leave { .. });
    let may = match role {
        Role::Player | Role::Bot => of_players,
        Role::Watcher => false,
        Role::Admin => !of_roster,
    };
    if !may {
        return Err(Code::REFUSED_ROLE_NOT_ALLOWED);
    }
    let is_own = character_of(command).is_some_and(|character| own.contains(&character));
    if role != Role::Admin && !is_own {
        return Err(Code::REFUSED_NOT_YOURS);
    }
    command.check().map_err(|_| Code::REFUSED_OUT_OF_RANGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_may_what_the_table_says() {
        let character = |id| CharacterId(id);
        let own = [character(1), character(2)];
        let (x, z) = (nav::Fixed::ZERO, nav::Fixed::ZERO);
        let far = nav::Fixed::from_int(16_001);
        let move_to = |id, x| Command::MoveTo {
            character: character(id),
            x,
            z,
        };
        let despawn = Command::Despawn {
            character: character(1),
        };
        let leave = Command::Leave {
            character: character(1),
        };
        let check = |role: Role, command: &Command, expected: Result<(), Code>| {
            assert_eq!(may_send(role, &own, command), expected, "{role:?} {command:?}");
        };
        for role in [Role::Player, Role::Bot] {
            check(role, &move_to(1, x), Ok(()));
            check(role, &move_to(2, x), Ok(()));
            check(role, &move_to(3, x), Err(Code::REFUSED_NOT_YOURS));
            check(role, &move_to(1, far), Err(Code::REFUSED_OUT_OF_RANGE));
            check(role, &despawn, Err(Code::REFUSED_ROLE_NOT_ALLOWED));
            check(role, &leave, Err(Code::REFUSED_ROLE_NOT_ALLOWED));
        }
        check(Role::Watcher, &move_to(1, x), Err(Code::REFUSED_ROLE_NOT_ALLOWED));
        check(Role::Admin, &move_to(3, x), Ok(()));
        check(Role::Admin, &despawn, Ok(()));
        check(Role::Admin, &leave, Err(Code::REFUSED_ROLE_NOT_ALLOWED));
        check(Role::Admin, &move_to(3, far), Err(Code::REFUSED_OUT_OF_RANGE));
    }
}
