//! Downloads of journals: a segment is a file that `replay` and `journal` read by itself.

use std::io::{Read, Seek, SeekFrom};
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::Pages;
use super::answer::{Answer, Problem};
use crate::journal::run;

/// Bytes read at once.
const CHUNK_BYTES: usize = 64 * 1024;

/// A segment that can be downloaded.
#[derive(Serialize)]
pub(super) struct SegmentLine {
    run: String,
    segment: String,
    first_tick: u64,
    bytes: u64,
}

/// All segments of a location, oldest first.
pub(super) async fn list(
    State(pages): State<Arc<Pages>>,
    Path(location): Path<String>,
) -> Answer<Vec<SegmentLine>> {
    let found = segments(&pages, &location)?;
    Ok(Json(found.into_iter().map(|(line, _)| line).collect()))
}

/// One of them; of the one that is being written what is there now.
pub(super) async fn download(
    State(pages): State<Arc<Pages>>,
    Path((location, run, segment)): Path<(String, String, String)>,
) -> Result<Response, Problem> {
    // Only what the list names: no path comes from the request.
    let found = segments(&pages, &location)?
        .into_iter()
        .find(|(line, _)| line.run == run && line.segment == segment);
    let (line, path) = found.ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, "no such segment"))?;
    let file = std::fs::File::open(&path).map_err(|error| io(&path, &error))?;
    let disposition = format!("attachment; filename=\"{}\"", line.segment);
    let headers = [
        ("content-type", "application/octet-stream".to_owned()),
        ("content-length", line.bytes.to_string()),
        ("content-disposition", disposition),
    ];
    Ok((headers, Body::from_stream(chunks(file, line.bytes))).into_response())
}

/// The first so many bytes of a file, read elsewhere.
fn chunks(
    file: std::fs::File,
    bytes: u64,
) -> impl futures_util::Stream<Item = std::io::Result<Bytes>> + Send + 'static {
    futures_util::stream::try_unfold((file, 0, bytes), |(mut file, offset, left)| async move {
        if left == 0 {
            return Ok(None);
        }
        let read = tokio::task::spawn_blocking(move || {
            let mut chunk = vec![0; CHUNK_BYTES.min(usize::try_from(left).unwrap_or(CHUNK_BYTES))];
            file.seek(SeekFrom::Start(offset))?;
            file.read_exact(&mut chunk)?;
            std::io::Result::Ok((file, Bytes::from(chunk)))
        });
        let (file, chunk) = read.await.map_err(std::io::Error::other)??;
        let length = chunk.len() as u64;
        Ok(Some((chunk, (file, offset + length, left - length))))
    })
}

fn segments(pages: &Pages, location: &str) -> Result<Vec<(SegmentLine, PathBuf)>, Problem> {
    if pages.directory.find(location).is_none() || location.is_empty() {
        return Err(Problem::new(StatusCode::NOT_FOUND, "no such location"));
    }
    let folder = pages.data_dir.join(location);
    let mut found = Vec::new();
    for run in run::runs(&folder).map_err(|error| io(&folder, &error))? {
        for segment in run::segments(&run.path).map_err(|error| io(&run.path, &error))? {
            // One that is packed or removed in this moment is named by the next list.
            let Ok(metadata) = std::fs::metadata(&segment.path) else {
                continue;
            };
            let line = SegmentLine {
                run: run::run_name(run.number),
                segment: file_name(&segment.path),
                first_tick: segment.first_tick,
                bytes: metadata.len(),
            };
            found.push((line, segment.path));
        }
    }
    Ok(found)
}

fn file_name(path: &FilePath) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

fn io(path: &FilePath, error: &std::io::Error) -> Problem {
    tracing::error!(path = %path.display(), %error, "a journal cannot be read");
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the journal cannot be read")
}
