//! Module `wire`; ../../../docs/ARCHITECTURE.md says what belongs here.

test {}
