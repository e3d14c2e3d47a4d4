//! Limits of one download: no more bytes than were announced (endless data), and no fewer in each
//! interval than a usable link brings (slow retrieval). The total time of a download is bounded by
//! both. Then the hash of what came.

const std = @import("std");
const base = @import("base");
const assert = std.debug.assert;

/// A link that is slower than this cannot be told from one that is held open.
const bytes_per_second_min = 8 << 10;
/// A metadata file that has not arrived within one interval is refused.
const interval_ms = 30_000;
const interval_bytes_min = bytes_per_second_min * interval_ms / std.time.ms_per_s;
/// A request that may take 20 s brings it over the slowest usable link.
const piece_size_min = 128 << 10;
pub const piece_size_max = 2 << 20;
/// After a piece that took no longer, twice as much is requested.
const quick_ms = 500;

pub const Download = @This();

size_max: u64,
size: u64 = 0,
interval_begin_ms: u64,
/// Since the interval began.
interval_bytes: u64 = 0,
hash: base.Sha256 = .init(.{}),
/// Bytes to request next, as far as so many are missing.
piece_size: u32 = piece_size_min,

/// `now_ms` is monotonic, here and below.
pub fn begin(size_max: u64, now_ms: u64) Download {
    return .{ .size_max = size_max, .interval_begin_ms = now_ms };
}

/// Takes the next bytes, or none when time has passed.
pub fn receive(
    download: *Download,
    bytes: []const u8,
    now_ms: u64,
) error{ TooLarge, TooSlow }!void {
    assert(download.size <= download.size_max);
    assert(now_ms >= download.interval_begin_ms);
    if (bytes.len > download.size_max - download.size) return error.TooLarge;
    download.size += bytes.len;
    download.interval_bytes += bytes.len;
    download.hash.update(bytes);
    if (now_ms - download.interval_begin_ms < interval_ms) return;
    if (download.interval_bytes < interval_bytes_min) return error.TooSlow;
    download.interval_begin_ms = now_ms;
    download.interval_bytes = 0;
}

/// A piece has arrived within `took_ms`.
pub fn onPiece(download: *Download, took_ms: u64) void {
    const is_quick = took_ms <= quick_ms;
    download.piece_size = if (is_quick)
        @min(2 * download.piece_size, piece_size_max)
    else
        piece_size_min;
    assert(download.piece_size >= piece_size_min and download.piece_size <= piece_size_max);
}

/// No answer came in time. Returns whether to request a smaller piece.
pub fn onNoAnswer(download: *Download) bool {
    const is_larger = download.piece_size > piece_size_min;
    download.piece_size = piece_size_min;
    return is_larger;
}

/// The bytes are the target that the metadata describe (section 5.7.3), or are dropped.
pub fn end(download: *Download, sha256: *const [32]u8) error{Mismatch}!void {
    if (download.size != download.size_max) return error.Mismatch;
    const digest = download.hash.finalResult();
    if (!std.mem.eql(u8, &digest, sha256)) return error.Mismatch;
}

const testing = std.testing;

test "data that does not end is cut off at the announced size" {
    var download: Download = .begin(10, 5);
    try download.receive("0123456789", 6);
    try testing.expectError(error.TooLarge, download.receive("x", 7));
    try testing.expectEqual(10, download.size);
}

test "a server that sends a byte now and then is given up within an interval" {
    var download: Download = .begin(1 << 20, 1000);
    var now_ms: u64 = 1000;
    while (now_ms < 1000 + interval_ms - 100) : (now_ms += 100) try download.receive("x", now_ms);
    try testing.expectError(error.TooSlow, download.receive("", 1000 + interval_ms));
}

test "a burst does not pay for a later interval" {
    const burst: [1 << 20]u8 = @splat(0);
    var download: Download = .begin(64 << 20, 0);
    try download.receive(&burst, 1);
    try download.receive("", interval_ms);
    try download.receive("x", interval_ms + 1);
    try testing.expectError(error.TooSlow, download.receive("x", 2 * interval_ms));
}

test "the slowest usable link delivers everything" {
    const second: [bytes_per_second_min]u8 = @splat(7);
    var download: Download = .begin(90 * second.len, 0);
    for (1..91) |at| try download.receive(&second, at * std.time.ms_per_s);
    try testing.expectEqual(90 * second.len, download.size);
}

test "pieces grow on a quick link, and are small again on a slow one" {
    var download: Download = .begin(64 << 20, 0);
    try testing.expect(!download.onNoAnswer());
    for (0..10) |_| download.onPiece(quick_ms);
    try testing.expectEqual(piece_size_max, download.piece_size);
    download.onPiece(quick_ms + 1);
    try testing.expectEqual(piece_size_min, download.piece_size);
    download.onPiece(0);
    try testing.expect(download.onNoAnswer());
    try testing.expectEqual(piece_size_min, download.piece_size);
    try testing.expect(!download.onNoAnswer());
}

test "only the described bytes are a target" {
    var digest: [32]u8 = undefined;
    base.Sha256.hash("abc", &digest, .{});
    var right: Download = .begin(3, 0);
    try right.receive("a", 0);
    try right.receive("bc", 1);
    try right.end(&digest);
    var short: Download = .begin(4, 0);
    try short.receive("abc", 0);
    try testing.expectError(error.Mismatch, short.end(&digest));
    var other: Download = .begin(3, 0);
    try other.receive("abd", 0);
    try testing.expectError(error.Mismatch, other.end(&digest));
}
