-- The index of a registry. Times are UTC as text (2026-01-31T12:00:00Z), which is ordered as they are; '' is never.

-- What belongs to the registry as a whole. set_up_hash: SHA-256 of the one-time token; '' once there is a user.
CREATE TABLE registry (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    made_at TEXT NOT NULL,
    set_up_hash TEXT NOT NULL,
    set_up_until TEXT NOT NULL
);

CREATE TABLE users (
    name TEXT PRIMARY KEY,
    admin INTEGER NOT NULL,
    made_at TEXT NOT NULL,
    closed_at TEXT NOT NULL DEFAULT ''
);

-- Whose packages are. Every user is an owner of his own name; others are groups, with their members.
CREATE TABLE owners (
    name TEXT PRIMARY KEY,
    made_at TEXT NOT NULL
);
CREATE TABLE members (
    owner TEXT NOT NULL REFERENCES owners (name),
    user_name TEXT NOT NULL REFERENCES users (name),
    PRIMARY KEY (owner, user_name)
);

-- hash: SHA-256 of the token, which is kept nowhere. scopes: words; owners: names, '' for all of the user's.
CREATE TABLE tokens (
    id INTEGER PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    user_name TEXT NOT NULL REFERENCES users (name),
    scopes TEXT NOT NULL,
    owners TEXT NOT NULL,
    purpose TEXT NOT NULL,
    made_at TEXT NOT NULL,
    expires_at TEXT NOT NULL,
    revoked_at TEXT NOT NULL DEFAULT ''
);

CREATE TABLE names (
    id INTEGER PRIMARY KEY,
    owner TEXT NOT NULL REFERENCES owners (name),
    project TEXT NOT NULL,
    name TEXT NOT NULL,
    public INTEGER NOT NULL,
    made_at TEXT NOT NULL,
    UNIQUE (owner, project, name)
);

-- digest: SHA-256 of the file; address: what the package is known by. summary: what verify said of it, as JSON. words:
-- what it is found by. A version never changes, but for its yank.
CREATE TABLE versions (
    id INTEGER PRIMARY KEY,
    name_id INTEGER NOT NULL REFERENCES names (id),
    version INTEGER NOT NULL,
    digest TEXT NOT NULL,
    address TEXT NOT NULL,
    size INTEGER NOT NULL,
    pushed_by TEXT NOT NULL REFERENCES users (name),
    pushed_at TEXT NOT NULL,
    replicates TEXT NOT NULL,
    summary TEXT NOT NULL,
    words TEXT NOT NULL,
    yanked_at TEXT NOT NULL DEFAULT '',
    yanked_by TEXT NOT NULL DEFAULT '',
    yank_reason TEXT NOT NULL DEFAULT '',
    UNIQUE (name_id, version),
    UNIQUE (name_id, digest)
);
CREATE INDEX versions_by_digest ON versions (digest);
CREATE INDEX versions_by_address ON versions (address);
CREATE INDEX versions_by_replicated ON versions (replicates) WHERE replicates <> '';
CREATE TRIGGER versions_stay BEFORE DELETE ON versions BEGIN SELECT RAISE(ABORT, 'a version is never removed'); END;
CREATE TRIGGER versions_are_immutable
    BEFORE UPDATE OF id, name_id, version, digest, address, size, pushed_by, pushed_at, replicates, summary ON versions
    BEGIN SELECT RAISE(ABORT, 'a version never changes'); END;

-- One line for each change. hash: SHA-256 of the line, with the hash of the one before.
CREATE TABLE audit (
    line INTEGER PRIMARY KEY,
    at TEXT NOT NULL,
    user_name TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    details TEXT NOT NULL,
    previous TEXT NOT NULL,
    hash TEXT NOT NULL
);
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'the audit log only grows'); END;
CREATE TRIGGER audit_is_not_cut BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, 'the audit log only grows'); END;
