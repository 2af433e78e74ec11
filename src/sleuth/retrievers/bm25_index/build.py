"""build_index: a stream of passages into an index directory, in bounded memory, published in one step."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from sleuth.errors import RetrievalError
from sleuth.retrievers.bm25_index import analysis
from sleuth.retrievers.bm25_index.distinct import Distinct
from sleuth.retrievers.bm25_index.engine import ENGINE_VERSION, Manifest
from sleuth.retrievers.bm25_index.writer import IndexWriter
from sleuth.retrievers.index_files.publish import publish, staging
from sleuth.types import Passage

Progress = Callable[[int], None]  # Called with the number of passages read so far.


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """Result of a build or an update."""

    num_passages: int  # Passages in the index now.
    sha256: str  # Hash of the passages, as in `identity()` of the retriever.
    num_added: int = 0  # New passages, including replacements.
    num_replaced: int = 0
    num_deleted: int = 0
    num_duplicates: int = 0  # Passages left out because their id was there already.
    duplicates: tuple[str, ...] = ()  # First few of their ids.
    unknown: tuple[str, ...] = ()  # Ids to delete that no passage has.


def build_index(
    passages: Iterable[Passage], directory: Path, *, progress: Progress | None = None
) -> IndexInfo:
    """Index `passages` for BM25 in `directory`, replacing an index that is there.

    The first passage of an id is kept, later ones are left out and counted. If anything fails, an
    existing index stays as it was. Waits while another process writes to the same index.
    Raises RetrievalError if there are no passages, one is malformed, or `directory` cannot be used.
    """
    directory = Path(directory)
    with os_errors(directory), staging(directory, Manifest) as content:
        distinct = Distinct(passages)
        with closing(IndexWriter(content)) as writer:
            for batch in distinct:
                writer.add(batch)
                if progress:
                    progress(distinct.num_read)
            if not writer.num_rows:
                raise RetrievalError(f"no passages to index for {str(directory)!r}")
            writer.finish()
        count = writer.num_rows
        manifest = publish(content, directory, describe(writer, count))
    return IndexInfo(
        count,
        manifest.sha256,
        num_added=count,
        num_duplicates=distinct.num_duplicates,
        duplicates=tuple(distinct.duplicates),
    )


def describe(writer: IndexWriter, num_passages: int) -> Manifest:
    """Return the manifest of what a writer wrote, without its files."""
    return Manifest(
        num_passages=num_passages,
        sha256=writer.sha256,
        num_rows=writer.num_rows,
        engine_version=ENGINE_VERSION,
        analyser=analysis.ANALYSER,
        analyser_fingerprint=analysis.fingerprint(),
    )


@contextmanager
def os_errors(directory: Path) -> Iterator[None]:
    """Raise an OSError, such as a full disk, as a RetrievalError that names the index."""
    try:
        yield
    except OSError as error:
        raise RetrievalError(f"writing index {str(directory)!r} failed: {error}") from error
