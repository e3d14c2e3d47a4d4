//! The properties of a simulated device.

const std = @import("std");
const base = @import("base");
const GuestWords = @import("guest_words.zig");
const read_trace = @import("read_trace.zig");
const stream = @import("wire").stream;

pub const Profile = struct {
    mac: base.Mac,
    /// The address the device has before DHCP; null: it has none, and needs an offer with one.
    own_address: ?base.Ip4,
    tftp_port: u16,
    reads: []const read_trace.Read,
    /// Think times are divided by this over 1000: 1000 is as recorded, 0 leaves none.
    speed_per_mille: u32 = 1000,
    breather_us: u64 = 800 * std.time.us_per_ms,
    guest: GuestWords.Profile = .{},
    misbehaviour: Misbehaviour = .none,
    /// Stands in for the key in a TPM; null: it has none.
    key: ?base.ecdsa_p256.KeyPair = null,
    /// Writes in progress that the caller may submit to the client.
    writes_max: u16 = 0,
    /// Bytes of memory for read-ahead; 0: none.
    read_ahead_bytes: u32 = 0,
    /// It reads ahead only in boots whose command line says so.
    reads_ahead_if_told: bool = false,
    /// As iPXE in network cards: it solicits an IPv6 router before it downloads its script.
    waits_for_router: bool = false,
    /// The newest version of the stream that the device offers.
    stream_version_max: stream.Version = .newest,
};

/// A deliberate mistake of the device, which tests the edge's diagnosis.
pub const Misbehaviour = enum {
    none,
    /// Gets its address and its offers, and sends nothing more.
    dhcp_only,
    wrong_token,
    /// Reads once.
    stop_reading,
};
