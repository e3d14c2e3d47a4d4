//! What the jobs `pack` and `fetch` order (packages/proto/UPLINK.md, "Differences"), checked once.
//! Pure.

const std = @import("std");
const base = @import("base");
const desired_state = @import("desired_state.zig");
const key_text = @import("key_text.zig");
const Pieces = @import("../difference/pieces.zig");

const Order = desired_state.StoreJob;

/// Other edges of a site that a job names.
pub const sources_max = 15;

/// Where differences lie, below the store's directory.
pub const folder = "differences";

pub const Fetch = struct {
    difference_id: base.Uuid,
    pieces: Pieces,
    list_sha256: [32]u8,
    /// Of the version that it becomes.
    root: [32]u8,
    /// Other edges of the site, in the order in which they are asked.
    sources: []const base.Uuid,
    from_control_plane: bool,
    /// Of what comes from the control plane.
    bytes_per_s: ?u64,
};

pub const Pack = struct {
    difference_id: base.Uuid,
    to_control_plane: bool,
    bytes_per_s: ?u64,
};

/// A difference that a `pack` has made, as the control plane keeps it.
pub const Packed = struct { size: u64, list_sha256: [32]u8 };

/// Returns why a job cannot be executed; null: it can.
pub fn problemOf(order: *const Order) ?[]const u8 {
    _ = order.versionId orelse return "it does not say of which version the difference is";
    _ = order.differenceId orelse return "it does not name the difference";
    if (order.rateBytesPerSecond) |rate| if (rate == 0) return "its rate is 0";
    if (!std.mem.eql(u8, order.kind, "fetch")) return null;
    if (order.sources.len > sources_max) return "it names too many edges";
    return if (fetchOf(order) == null) "it does not describe the difference" else null;
}

/// Returns null for another job, or one that has a problem.
pub fn fetchOf(order: *const Order) ?Fetch {
    if (!std.mem.eql(u8, order.kind, "fetch")) return null;
    const text = order.differenceListSha256 orelse return null;
    const manifest = order.manifest orelse return null;
    if (order.sources.len > sources_max) return null;
    var fetch: Fetch = .{
        .difference_id = order.differenceId orelse return null,
        .pieces = Pieces.of(order.differenceSizeBytes orelse return null) orelse return null,
        .list_sha256 = undefined,
        .root = key_text.parse(manifest.root) catch return null,
        .sources = order.sources,
        .from_control_plane = order.fromControlPlane,
        .bytes_per_s = order.rateBytesPerSecond,
    };
    if (text.len != 2 * fetch.list_sha256.len) return null;
    _ = std.fmt.hexToBytes(&fetch.list_sha256, text) catch return null;
    return fetch;
}

/// Returns null for another job, or one that has a problem.
pub fn packOf(order: *const Order) ?Pack {
    if (!std.mem.eql(u8, order.kind, "pack")) return null;
    return .{
        .difference_id = order.differenceId orelse return null,
        .to_control_plane = order.toControlPlane,
        .bytes_per_s = order.rateBytesPerSecond,
    };
}

/// Tells whether the edge keeps the difference: a job works on it, or other edges need it.
pub fn isWanted(id: base.Uuid, orders: []const Order, kept: []const base.Uuid) bool {
    for (kept) |other| if (other.eql(id)) return true;
    for (orders) |*order| if (order.differenceId) |other| if (other.eql(id)) return true;
    return false;
}

const testing = std.testing;

fn uuid(number: u8) base.Uuid {
    return .fromRandom(@splat(number));
}

const digits: [64]u8 = @splat('a');

const whole: Order = .{
    .id = uuid(1),
    .kind = "fetch",
    .versionId = uuid(2),
    .differenceId = uuid(3),
    .differenceSizeBytes = Pieces.piece_size + 1,
    .differenceListSha256 = &digits,
    .manifest = .{ .root = "q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s=", .counter = 3 },
    .sources = &.{uuid(4)},
    .rateBytesPerSecond = 5,
};

test "a fetch says what it gets, how it is checked, and from whom" {
    try testing.expectEqual(null, problemOf(&whole));
    const fetch = fetchOf(&whole).?;
    try testing.expectEqual(2, fetch.pieces.count());
    try testing.expectEqual(@as([32]u8, @splat(0xaa)), fetch.list_sha256);
    try testing.expectEqual(@as([32]u8, @splat(0xab)), fetch.root);
    try testing.expectEqual(uuid(4), fetch.sources[0]);
    try testing.expect(!fetch.from_control_plane);
    try testing.expectEqual(5, fetch.bytes_per_s.?);
    try testing.expectEqual(null, packOf(&whole));
}

test "a job that lacks something is refused with what it lacks" {
    const many: [sources_max + 1]base.Uuid = @splat(uuid(1));
    var orders: [9]Order = @splat(whole);
    orders[0].versionId = null;
    orders[1].differenceId = null;
    orders[2].differenceSizeBytes = 0;
    orders[3].differenceListSha256 = digits[1..];
    orders[4].differenceListSha256 = "x" ++ digits[1..];
    orders[5].manifest = null;
    orders[6].manifest = .{ .root = "q6ur", .counter = 1 };
    orders[7].sources = &many;
    orders[8].rateBytesPerSecond = 0;
    for (&orders) |*order| try testing.expect(problemOf(order) != null);
    const pack: Order = .{ .id = uuid(1), .kind = "pack", .versionId = uuid(2) };
    try testing.expectEqualStrings("it does not name the difference", problemOf(&pack).?);
    try testing.expectEqual(null, packOf(&pack));
}

test "a difference is kept for its job and for other edges, and no longer" {
    try testing.expect(isWanted(uuid(3), &.{whole}, &.{}));
    try testing.expect(isWanted(uuid(3), &.{}, &.{ uuid(1), uuid(3) }));
    try testing.expect(!isWanted(uuid(3), &.{}, &.{uuid(1)}));
}
