//! Building blocks of every module: checked reading and writing of bytes, bounded containers,
//! addresses, identifiers, a deterministic random source and the counters of ignored input. It must
//! never touch a clock, a socket, a file or an allocator.

const std = @import("std");

pub const Cursor = @import("cursor.zig");
pub const ByteWriter = @import("byte_writer.zig");
pub const BoundedArray = @import("bounded_array.zig").BoundedArray;
pub const Mac = @import("addresses.zig").Mac;
pub const Ip4 = @import("addresses.zig").Ip4;
pub const Endpoint = @import("addresses.zig").Endpoint;
pub const Ip4Prefix = @import("prefix.zig");
pub const EndpointIndex = @import("endpoint_index.zig");
pub const SlotIndex = @import("slot_index.zig").SlotIndex;
pub const SlotSet = @import("slot_set.zig");
pub const allocUntouched = @import("untouched.zig").allocUntouched;
pub const freeUntouched = @import("untouched.zig").freeUntouched;
pub const allocZeroed = @import("untouched.zig").allocZeroed;
pub const preferLargePages = @import("untouched.zig").preferLargePages;
pub const freeZeroed = @import("untouched.zig").freeZeroed;
pub const mix = @import("endpoint_index.zig").mix;
pub const prefetch = @import("prefetch.zig").prefetch;
pub const Uuid = @import("uuid.zig");
pub const UntrustedText = @import("untrusted_text.zig");
pub const Prng = @import("prng.zig");
pub const DurationHistogram = @import("duration_histogram.zig");
pub const Sha256 = @import("sha256.zig");
pub const HmacSha256 = std.crypto.auth.hmac.Hmac(Sha256);
pub const HkdfSha256 = std.crypto.kdf.hkdf.Hkdf(HmacSha256);
pub const sort = @import("sort.zig").sort;
pub const Ed25519 = @import("ed25519.zig");
pub const ecdsa_p256 = @import("ecdsa_p256.zig");
pub const x25519 = @import("x25519.zig");
pub const aegis128l = @import("aegis128l.zig");
pub const IgnoreReason = @import("ignored.zig").IgnoreReason;
pub const IgnoredCounters = @import("ignored.zig").IgnoredCounters;

/// The version that the programs print and report.
pub const version: []const u8 = @import("config").version;

/// Stored in the program's bytes, so that a release can be built from it on a machine where it does
/// not run.
pub const release_mark: []const u8 = "bootfarm release mark: " ++
    @import("config").version ++ " " ++ @tagName(@import("builtin").cpu.arch) ++ "\n";

test {
    _ = @import("cursor.zig");
    _ = @import("byte_writer.zig");
    _ = @import("bounded_array.zig");
    _ = @import("addresses.zig");
    _ = @import("prefix.zig");
    _ = @import("duration_histogram.zig");
    _ = @import("endpoint_index.zig");
    _ = @import("slot_index.zig");
    _ = SlotSet;
    _ = @import("untouched.zig");
    _ = @import("uuid.zig");
    _ = @import("untrusted_text.zig");
    _ = @import("prng.zig");
    _ = Sha256;
    _ = @import("sort.zig");
    _ = Ed25519;
    _ = ecdsa_p256;
    _ = x25519;
    _ = aegis128l;
    _ = @import("ignored.zig");
}
