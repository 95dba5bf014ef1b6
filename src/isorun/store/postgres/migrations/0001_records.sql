-- The first schema: a row for each run, what many runs share once, and a row for each cell, by which claims are made.

-- What belongs to the store as a whole. key: see isorun.store.AbstractStore.
CREATE TABLE isorun.store (
    id integer PRIMARY KEY DEFAULT 1 CHECK (id = 1),
    key bytea NOT NULL
);

-- JSON that many runs share word for word (cells without seed and repeat, environments and their parts, code, sources),
-- kept once. hash: the first 16 bytes of BLAKE2b that stand for the content.
CREATE TABLE isorun.parts (
    hash bytea PRIMARY KEY,
    content text NOT NULL
);

-- One row a cell that was ever claimed or recorded. attempt: the latest one that was claimed or recorded; it only grows,
-- and is what fences off whoever was replaced. token: whose claim it is, NULL where nobody's; until: when it lapses
-- unless it is renewed. Whoever claims or records locks this row first.
CREATE TABLE isorun.cells (
    cell text COLLATE "C" PRIMARY KEY,
    attempt bigint NOT NULL DEFAULT 0,
    finished boolean NOT NULL DEFAULT false,
    token bytea,
    host text NOT NULL DEFAULT '',
    pid bigint NOT NULL DEFAULT 0,
    since timestamptz,
    until timestamptz
) WITH (fillfactor = 70);

-- One execution of a cell. digest: of the whole record's canonical JSON; checksum: of this row. body: the record as
-- canonical JSON, with hashes in place of its shared parts; series: the numbers that it describes, one after another.
CREATE TABLE isorun.runs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    cell text COLLATE "C" NOT NULL REFERENCES isorun.cells (cell),
    attempt bigint NOT NULL,
    state text NOT NULL,
    digest bytea NOT NULL,
    checksum bytea NOT NULL,
    body text NOT NULL,
    series bytea NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (cell, attempt)
);
CREATE UNIQUE INDEX finished_runs ON isorun.runs (cell) WHERE state = 'finished';

-- Numbers of trainings do not get smaller by compression, and trying it takes longer than writing them.
ALTER TABLE isorun.runs ALTER COLUMN series SET STORAGE EXTERNAL;

-- Kept studies, plans and searches. content: JSON; digest: of its bytes; written: the higher, the later.
CREATE SEQUENCE isorun.written;
CREATE TABLE isorun.documents (
    kind text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    content text NOT NULL,
    digest bytea NOT NULL,
    written bigint NOT NULL DEFAULT nextval('isorun.written'),
    PRIMARY KEY (kind, name)
);
