"""Where each data set comes from: addresses, sizes, checksums, licences."""
