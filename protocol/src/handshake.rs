//! The first frames of a connection.
