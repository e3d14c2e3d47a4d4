//! Which edge of a site keeps the copy of a write layer: rendezvous hashing among the edges other
//! than the one that has the layer. All edges calculate the same from the desired state, alive or
//! not, so a copy moves only when edges come or go. Pure.

const std = @import("std");
const base = @import("base");
const Edges = @import("../site/edges.zig");
const Uuid = base.Uuid;

/// Null: there is no other edge.
pub fn ofSite(layer: Uuid, owner: Uuid, site: *const Edges) ?Uuid {
    var ids: [Edges.edges_max + 1]Uuid = undefined;
    for (site.edges.constSlice(), 0..) |*edge, index| ids[index] = edge.id;
    return of(layer, owner, ids[0..site.edges.count]);
}

fn of(layer: Uuid, owner: Uuid, edges: []const Uuid) ?Uuid {
    var found: ?struct { id: Uuid, score: u64 } = null;
    for (edges) |id| {
        if (id.eql(owner)) continue;
        const score = scoreOf(id, layer);
        if (found) |best| {
            if (score < best.score) continue;
            if (score == best.score and !isBefore(id, best.id)) continue;
        }
        found = .{ .id = id, .score = score };
    }
    return if (found) |best| best.id else null;
}

fn scoreOf(edge: Uuid, layer: Uuid) u64 {
    var hash: base.Sha256 = .init(.{});
    hash.update("bootfarm-layer-copies-v1");
    hash.update(&edge.bytes);
    hash.update(&layer.bytes);
    return std.mem.readInt(u64, hash.finalResult()[0..8], .big);
}

fn isBefore(a: Uuid, b: Uuid) bool {
    return std.mem.order(u8, &a.bytes, &b.bytes) == .lt;
}

const testing = std.testing;

fn uuid(number: u8) Uuid {
    return .fromRandom(@splat(number));
}

test "one edge other than the owner keeps a layer's copy, whatever the order of the edges" {
    const edges = [_]Uuid{ uuid(1), uuid(2), uuid(3), uuid(4) };
    const others = [_]Uuid{ uuid(3), uuid(4), uuid(2), uuid(1) };
    var counts: [5]u32 = @splat(0);
    for (0..200) |number| {
        const layer: Uuid = .fromRandom(@splat(@intCast(number)));
        const found = of(layer, uuid(1), &edges).?;
        try testing.expect(found.eql(of(layer, uuid(1), &others).?));
        for (edges, 0..) |id, index| if (id.eql(found)) {
            counts[index] += 1;
        };
    }
    try testing.expectEqual(0, counts[0]);
    for (counts[1..4]) |count| try testing.expect(count > 200 / 6);
}

test "an edge that comes takes copies to itself alone, and one that goes gives only its own away" {
    const few = [_]Uuid{ uuid(1), uuid(2), uuid(3) };
    const more = few ++ [_]Uuid{uuid(4)};
    for (0..200) |number| {
        const layer: Uuid = .fromRandom(@splat(@intCast(number)));
        const before = of(layer, uuid(1), &few).?;
        const after = of(layer, uuid(1), &more).?;
        try testing.expect(after.eql(before) or after.eql(uuid(4)));
    }
}

test "a site with one edge has no second one" {
    try testing.expectEqual(null, of(uuid(9), uuid(1), &.{uuid(1)}));
    try testing.expectEqual(null, of(uuid(9), uuid(1), &.{}));
}
