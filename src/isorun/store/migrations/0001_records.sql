-- The first schema: runs with what they left, small enough for ten thousand runs to be read at once.

-- JSON that many runs share word for word (environments and their parts, code, sources, names of digests), kept once.
CREATE TABLE documents (
    id INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    content TEXT NOT NULL
);

-- What the cells of identical runs share, apart from seed and repeat. content: command, config values, environment.
CREATE TABLE cell_groups (
    id INTEGER PRIMARY KEY,
    approach TEXT NOT NULL,
    config TEXT NOT NULL,
    environment TEXT NOT NULL,
    level TEXT NOT NULL,
    content INTEGER NOT NULL UNIQUE REFERENCES documents (id)
);

-- Names of metrics.
CREATE TABLE names (
    id INTEGER PRIMARY KEY,
    name NOT NULL UNIQUE  -- text; bytes where it is not valid UTF-8
);

-- One execution of a cell. content_digest: of the whole record's canonical JSON; document: its small remaining parts.
-- digest_names: a document with [name, bytes] for each digest; digests: those bytes, one after another.
-- seed and seed_used have no type, since a seed may have more than 64 bits; log_tail is zlib-compressed UTF-8.
CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    cell TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    cell_group INTEGER NOT NULL REFERENCES cell_groups (id),
    seed,
    repeat INTEGER NOT NULL,
    state TEXT NOT NULL,
    exit_code INTEGER,
    signal TEXT NOT NULL,
    launch TEXT NOT NULL,
    seed_used,
    started_at TEXT NOT NULL,
    wall_seconds REAL,
    cpu_seconds REAL,
    peak_memory_bytes INTEGER NOT NULL,
    environment INTEGER NOT NULL REFERENCES documents (id),
    code INTEGER NOT NULL REFERENCES documents (id),
    sources INTEGER NOT NULL REFERENCES documents (id),
    content_digest BLOB NOT NULL,
    digest_names INTEGER NOT NULL REFERENCES documents (id),
    digests BLOB NOT NULL,
    document TEXT NOT NULL,
    log_tail BLOB NOT NULL
);

-- At most one finished record a cell; each run is in exactly one of the two indexes.
CREATE UNIQUE INDEX finished_runs ON runs (cell) WHERE state = 'finished';
CREATE UNIQUE INDEX other_runs ON runs (cell, attempt) WHERE state <> 'finished';

-- Steps and seconds that series of a run share. steps: float64, or NULL for a range from first_step by stride.
-- seconds: 16-bit gaps in ticks of 2^exponent after first_tick, or float64 where exponent is NULL. Little-endian.
CREATE TABLE axes (
    id INTEGER PRIMARY KEY,
    points INTEGER NOT NULL,
    first_step REAL NOT NULL,
    stride REAL NOT NULL,
    steps BLOB,
    exponent INTEGER,
    first_tick INTEGER NOT NULL,
    seconds BLOB NOT NULL
);

-- One metric of one run: its values as little-endian float64. There is no index by metric: the metrics of a run lie
-- side by side, so that one metric of all runs touches every page anyway.
CREATE TABLE series (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES runs (id),
    metric INTEGER NOT NULL REFERENCES names (id),
    axis INTEGER NOT NULL REFERENCES axes (id),
    content BLOB NOT NULL
);
CREATE UNIQUE INDEX series_of_run ON series (run, metric);

-- description: name, step, kind, dtype and shape as JSON; content: zlib-compressed little-endian numbers, or NULL
-- where they came in another form and are in the description.
CREATE TABLE predictions (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES runs (id),
    description TEXT NOT NULL,
    content BLOB
);
CREATE INDEX predictions_of_run ON predictions (run);
