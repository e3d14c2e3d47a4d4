//! Chooses the owner of a device: every edge of a site computes the same order of edges by
//! rendezvous hashing of the device's address (packages/proto/PEERS.md, "Order"). Pure integer
//! arithmetic, so that every processor computes the same order.

const std = @import("std");
const base = @import("base");
const Holding = @import("holdings.zig").Holding;
const SiteEdges = @import("edges.zig");
const assert = std.debug.assert;

/// The properties of an edge that the order depends on, all as the edge itself last reported them.
pub const Candidate = struct {
    /// Index in the site's edges.
    index: u8,
    id: base.Uuid,
    weight: u8,
    draining: bool,
    near: bool,
    booting: u32,
    /// Whether it has the device's version.
    holding: Holding = .unknown,
};

pub const Candidates = base.BoundedArray(Candidate, SiteEdges.edges_max + 1);

/// Indexes of the site's edges: the first one answers at once, each other one only if those before
/// it have not.
pub const Order = base.BoundedArray(u8, SiteEdges.edges_max + 1);

const Ranked = struct { index: u8, id: base.Uuid, class: u8, distance: u64 };

pub fn order(candidates: *const Candidates, mac: base.Mac) Order {
    var ranked: base.BoundedArray(Ranked, SiteEdges.edges_max + 1) = .empty;
    for (candidates.constSlice()) |*candidate| ranked.appendAssumeCapacity(.{
        .index = candidate.index,
        .id = candidate.id,
        .class = classOf(candidate),
        .distance = distanceOf(candidate, mac),
    });
    base.sort(Ranked, ranked.buffer[0..ranked.count], {}, before);
    var result: Order = .empty;
    for (ranked.constSlice()) |*edge| result.appendAssumeCapacity(edge.index);
    return result;
}

/// A lower class comes first, whatever the weights are.
fn classOf(candidate: *const Candidate) u8 {
    var class: u8 = switch (candidate.holding) {
        .held => 0,
        .unknown => 8,
        .damaged => 16,
        .lacking => 24,
    };
    if (candidate.draining) class += 4;
    if (candidate.weight == 0) class += 2;
    if (!candidate.near) class += 1;
    return class;
}

/// Returns an exponentially distributed number of mean 1 / weight: each edge has the smallest of
/// several as often as its share of the weights.
fn distanceOf(candidate: *const Candidate, mac: base.Mac) u64 {
    const share = @as(u64, @max(candidate.weight, 1)) * loadFactor(candidate.booting);
    return (depthOf(candidate.id, mac) << 16) / share;
}

/// In eighths: 8 for an edge with less than 8 devices booting, one less for each doubling, never
/// below 2, so that a loaded edge gets fewer new boots and never none.
pub fn loadFactor(booting: u32) u64 {
    const doublings: u64 = 32 - @as(u64, @clz(booting >> 3));
    return 8 - @as(u64, @min(doublings, 6));
}

/// Returns -log2(h / 2^64) with 32 fractional bits, h being the first 8 bytes of SHA-256(edge id,
/// MAC); below 2^38.
fn depthOf(id: base.Uuid, mac: base.Mac) u64 {
    var hash: base.Sha256 = .init(.{});
    hash.update(&id.bytes);
    hash.update(&mac.bytes);
    var digest: [32]u8 = undefined;
    hash.final(&digest);
    const number = @max(std.mem.readInt(u64, digest[0..8], .big), 1);
    return (@as(u64, 64) << 32) - log2(number);
}

/// Returns the logarithm of a number above 0, with 32 fractional bits, rounded down: repeated
/// squaring gives the fraction's bits.
fn log2(number: u64) u64 {
    assert(number > 0);
    const zeros: u6 = @intCast(@clz(number));
    var mantissa = number << zeros;
    var result: u64 = 63 - @as(u64, zeros);
    for (0..32) |_| {
        const square = @as(u128, mantissa) * mantissa;
        const carries = square >> 127 != 0;
        mantissa = @truncate(if (carries) square >> 64 else square >> 63);
        result = result << 1 | @intFromBool(carries);
    }
    return result;
}

fn before(_: void, a: Ranked, b: Ranked) bool {
    if (a.class != b.class) return a.class < b.class;
    if (a.distance != b.distance) return a.distance < b.distance;
    return std.mem.order(u8, &a.id.bytes, &b.id.bytes) == .lt;
}

const testing = std.testing;

const test_devices = 10_000;

fn testCandidate(number: u8, weight: u8) Candidate {
    return .{
        .index = number,
        .id = .fromRandom(@splat(number + 1)),
        .weight = weight,
        .draining = false,
        .near = false,
        .booting = 0,
    };
}

fn testCandidates(weights: []const u8) Candidates {
    var list: Candidates = .empty;
    for (weights, 0..) |weight, number|
        list.appendAssumeCapacity(testCandidate(@intCast(number), weight));
    return list;
}

fn testMac(number: usize) base.Mac {
    return .fromInt(@intCast(0x02bf_0000_0000 + number));
}

fn winners(candidates: *const Candidates) [SiteEdges.edges_max + 1]u32 {
    var counts: [SiteEdges.edges_max + 1]u32 = @splat(0);
    for (0..test_devices) |number| counts[order(candidates, testMac(number)).buffer[0]] += 1;
    return counts;
}

fn expectShare(count: u32, numerator: u32, denominator: u32) !void {
    const wanted = test_devices * numerator / denominator;
    // Three standard deviations of 10,000 draws are at most 150.
    try testing.expect(count + 150 >= wanted);
    try testing.expect(count <= wanted + 150);
}

test "logarithms are right at powers of two and in between" {
    try testing.expectEqual(0, log2(1));
    try testing.expectEqual(1 << 32, log2(2));
    try testing.expectEqual(@as(u64, 63) << 32, log2(1 << 63));
    // log2(3) = 1.5849625007, floor of 2^32 times it.
    try testing.expectEqual(6807362105, log2(3));
    try testing.expectEqual(274877906943, log2(std.math.maxInt(u64)));
}

test "devices are assigned to edges in proportion to their weights" {
    const equal = winners(&testCandidates(&.{ 1, 1 }));
    try expectShare(equal[0], 1, 2);
    const counts = winners(&testCandidates(&.{ 10, 30, 60 }));
    try expectShare(counts[0], 1, 10);
    try expectShare(counts[1], 3, 10);
    try expectShare(counts[2], 6, 10);
}

test "the order does not depend on the order in which the edges are listed" {
    const listed = testCandidates(&.{ 5, 9, 20, 1 });
    var turned: Candidates = .empty;
    for (0..4) |number| turned.appendAssumeCapacity(listed.buffer[3 - number]);
    for (0..1000) |number| {
        const a = order(&listed, testMac(number));
        const b = order(&turned, testMac(number));
        try testing.expectEqualSlices(u8, a.constSlice(), b.constSlice());
    }
}

test "a lost edge moves only its own devices, each to the second of its order" {
    const all = testCandidates(&.{ 4, 4, 4 });
    var without: Candidates = .empty;
    without.appendAssumeCapacity(all.buffer[0]);
    without.appendAssumeCapacity(all.buffer[2]);
    for (0..test_devices) |number| {
        const earlier = order(&all, testMac(number));
        const later = order(&without, testMac(number));
        const heir = if (earlier.buffer[0] == 1) earlier.buffer[1] else earlier.buffer[0];
        try testing.expectEqual(heir, later.buffer[0]);
    }
}

test "draining edges and those of weight 0 come last, draining ones at the very end" {
    var candidates = testCandidates(&.{ 100, 1, 0 });
    candidates.buffer[0].draining = true;
    for (0..200) |number|
        try testing.expectEqualSlices(u8, &.{ 1, 2, 0 }, order(
            &candidates,
            testMac(number),
        ).constSlice());
}

test "edges that hold the device's version come first, also draining ones" {
    var candidates = testCandidates(&.{ 100, 1, 100, 1 });
    candidates.buffer[0].holding = .lacking;
    candidates.buffer[1].holding = .held;
    candidates.buffer[1].draining = true;
    candidates.buffer[2].holding = .damaged;
    for (0..200) |number|
        try testing.expectEqualSlices(u8, &.{ 1, 3, 2, 0 }, order(
            &candidates,
            testMac(number),
        ).constSlice());
}

test "edges near the device come before the others of their kind, by weight among themselves" {
    var candidates = testCandidates(&.{ 100, 1, 3, 100 });
    candidates.buffer[1].near = true;
    candidates.buffer[2].near = true;
    candidates.buffer[3].draining = true;
    candidates.buffer[3].near = true;
    const counts = winners(&candidates);
    try testing.expectEqual(0, counts[0]);
    try testing.expectEqual(0, counts[3]);
    try expectShare(counts[1], 1, 4);
    for (0..200) |number| {
        const found = order(&candidates, testMac(number));
        try testing.expectEqual(0, found.buffer[2]);
        try testing.expectEqual(3, found.buffer[3]);
    }
}

test "a loaded edge gets fewer new devices, and never less than a quarter of its weight" {
    try testing.expectEqual(8, loadFactor(0));
    try testing.expectEqual(8, loadFactor(7));
    try testing.expectEqual(7, loadFactor(8));
    try testing.expectEqual(2, loadFactor(256));
    try testing.expectEqual(2, loadFactor(std.math.maxInt(u32)));
    var candidates = testCandidates(&.{ 10, 10 });
    candidates.buffer[0].booting = 100;
    try expectShare(winners(&candidates)[0], 4, 12);
    candidates.buffer[0].booting = 1_000_000;
    try expectShare(winners(&candidates)[0], 2, 10);
}

test "golden orders of packages/proto/vectors/peers-v1.json" {
    const Edge = struct { id: base.Uuid, weight: u8, draining: bool, near: bool, booting: u32 };
    const Vectors = struct {
        orders: []const struct { mac: base.Mac, edges: []const Edge, order: []const base.Uuid },
    };
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const vectors = try std.json.parseFromSliceLeaky(
        Vectors,
        arena.allocator(),
        @embedFile("peers_vectors_json"),
        .{ .ignore_unknown_fields = true },
    );
    try testing.expect(vectors.orders.len >= 20);
    for (vectors.orders) |*vector| {
        var candidates: Candidates = .empty;
        for (vector.edges, 0..) |*edge, index| candidates.appendAssumeCapacity(.{
            .index = @intCast(index),
            .id = edge.id,
            .weight = edge.weight,
            .draining = edge.draining,
            .near = edge.near,
            .booting = edge.booting,
        });
        const found = order(&candidates, vector.mac);
        try testing.expectEqual(vector.order.len, found.count);
        for (vector.order, found.constSlice()) |wanted, index|
            try testing.expect(vector.edges[index].id.eql(wanted));
    }
}
