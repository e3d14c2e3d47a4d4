//! Module `host`; ../../../docs/ARCHITECTURE.md says what belongs here.

test {}
