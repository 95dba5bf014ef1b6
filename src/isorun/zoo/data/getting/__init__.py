"""Getting data: download with resume and checksum, files a user brought, and what is told meanwhile."""
