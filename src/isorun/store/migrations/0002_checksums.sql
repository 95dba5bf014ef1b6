-- What every row of a run, with all that belongs to it in other tables, must add up to. Rows from before have none until
-- each was compared with its content digest; one that keeps none is damaged.
ALTER TABLE runs ADD COLUMN checksum BLOB;
