-- The index of a registry, in the schema isorun_registry. Times are UTC as text (2026-01-31T12:00:00Z), which is ordered
-- as they are; '' is never.

-- What belongs to the registry as a whole. set_up_hash: SHA-256 of the one-time token; '' once there is a user.
CREATE TABLE registry (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    made_at text COLLATE "C" NOT NULL,
    set_up_hash text COLLATE "C" NOT NULL,
    set_up_until text COLLATE "C" NOT NULL
);

CREATE TABLE users (
    name text COLLATE "C" PRIMARY KEY,
    admin INTEGER NOT NULL,
    made_at text COLLATE "C" NOT NULL,
    closed_at text COLLATE "C" NOT NULL DEFAULT ''
);

-- Whose packages are. Every user is an owner of his own name; others are groups, with their members.
CREATE TABLE owners (
    name text COLLATE "C" PRIMARY KEY,
    made_at text COLLATE "C" NOT NULL
);
CREATE TABLE members (
    owner text COLLATE "C" NOT NULL REFERENCES owners (name),
    user_name text COLLATE "C" NOT NULL REFERENCES users (name),
    PRIMARY KEY (owner, user_name)
);

-- hash: SHA-256 of the token, which is kept nowhere. scopes: words; owners: names, '' for all of the user's.
CREATE TABLE tokens (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hash text COLLATE "C" NOT NULL UNIQUE,
    user_name text COLLATE "C" NOT NULL REFERENCES users (name),
    scopes text COLLATE "C" NOT NULL,
    owners text COLLATE "C" NOT NULL,
    purpose text COLLATE "C" NOT NULL,
    made_at text COLLATE "C" NOT NULL,
    expires_at text COLLATE "C" NOT NULL,
    revoked_at text COLLATE "C" NOT NULL DEFAULT ''
);

CREATE TABLE names (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner text COLLATE "C" NOT NULL REFERENCES owners (name),
    project text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    public INTEGER NOT NULL,
    made_at text COLLATE "C" NOT NULL,
    UNIQUE (owner, project, name)
);

-- digest: SHA-256 of the file; address: what the package is known by. summary: what verify said of it, as JSON. words:
-- what it is found by. A version never changes, but for its yank.
CREATE TABLE versions (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name_id BIGINT NOT NULL REFERENCES names (id),
    version INTEGER NOT NULL,
    digest text COLLATE "C" NOT NULL,
    address text COLLATE "C" NOT NULL,
    size BIGINT NOT NULL,
    pushed_by text COLLATE "C" NOT NULL REFERENCES users (name),
    pushed_at text COLLATE "C" NOT NULL,
    replicates text COLLATE "C" NOT NULL,
    summary text COLLATE "C" NOT NULL,
    words text COLLATE "C" NOT NULL,
    yanked_at text COLLATE "C" NOT NULL DEFAULT '',
    yanked_by text COLLATE "C" NOT NULL DEFAULT '',
    yank_reason text COLLATE "C" NOT NULL DEFAULT '',
    UNIQUE (name_id, version),
    UNIQUE (name_id, digest)
);
CREATE INDEX versions_by_digest ON versions (digest);
CREATE INDEX versions_by_address ON versions (address);
CREATE INDEX versions_by_replicated ON versions (replicates) WHERE replicates <> '';
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a version never changes, and the audit log only grows';
END $$;
CREATE TRIGGER versions_stay BEFORE DELETE ON versions FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER versions_are_immutable
    BEFORE UPDATE OF id, name_id, version, digest, address, size, pushed_by, pushed_at, replicates, summary ON versions
    FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- One line for each change. hash: SHA-256 of the line, with the hash of the one before.
CREATE TABLE audit (
    line BIGINT PRIMARY KEY,
    at text COLLATE "C" NOT NULL,
    user_name text COLLATE "C" NOT NULL,
    action text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    details text COLLATE "C" NOT NULL,
    previous text COLLATE "C" NOT NULL,
    hash text COLLATE "C" NOT NULL
);
CREATE TRIGGER audit_only_grows BEFORE UPDATE OR DELETE ON audit FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER audit_is_not_emptied BEFORE TRUNCATE ON audit FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
