//! What goes into the stream client and what comes out of it, besides packets.

const base = @import("base");
const wire = @import("wire").stream;

pub const Identity = struct {
    boot_id: base.Uuid,
    token: [16]u8,
    /// Unguessable; the nonces of all hellos of this boot come from it.
    nonce_seed: [32]u8,
};

/// What WELCOME said.
pub const Session = struct {
    id: u64,
    version_tag: u64,
    version_id: base.Uuid,
    /// Bytes.
    disk_size: u64,
    fragment_size: u16,
    outstanding_bytes_max: u32,
    resume_secret: [32]u8,
};

pub const Event = union(enum) {
    /// The session is open; `resumed` when it is not the boot's first.
    established: struct { resumed: bool },
    /// The edge will not serve this boot.
    refused: wire.RefuseCode,
    /// A resumption offered another version or size: a boot never mixes two.
    version_changed,
    /// The buffer of the read with this tag is complete.
    read_done: struct { tag: u64, buffer: []u8 },
    read_failed: struct { tag: u64, code: wire.ReadErrorCode },
    ready_acknowledged,
};

pub const Statistics = struct {
    reads: u64 = 0,
    read_bytes: u64 = 0,
    packets_in: u64 = 0,
    bytes_in: u64 = 0,
    packets_out: u64 = 0,
    bytes_out: u64 = 0,
    /// READs sent again and the fragments they named.
    repeats: u64 = 0,
    missing_fragments: u64 = 0,
    /// Fragments that had come before, or belonged to no read any more.
    unexpected_fragments: u64 = 0,
    store_errors: u64 = 0,
    resumptions: u64 = 0,
    /// Packets that were malformed or not from this session.
    ignored: u64 = 0,
};
