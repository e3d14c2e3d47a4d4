//! Tests of state_delta.zig with the golden vectors of packages/proto/vectors/state-delta-v1.json,
//! which the TypeScript tests read as well.

const std = @import("std");
const base = @import("base");
const desired_state = @import("desired_state.zig");
const key_text = @import("key_text.zig");
const state_delta = @import("state_delta.zig");

const testing = std.testing;

const Vectors = struct {
    version: u32,
    edgeId: base.Uuid,
    organizationKey: struct { publicKey: []const u8 },
    basePair: desired_state.Pair,
    base: []const u8,
    cases: []const struct {
        name: []const u8,
        verdict: []const u8,
        payload: ?[]const u8 = null,
        answer: std.json.Value,
    },
};

fn load(arena: std.mem.Allocator) !Vectors {
    const text = @embedFile("state_delta_vectors_json");
    const vectors = try std.json.parseFromSliceLeaky(Vectors, arena, text, .{});
    try testing.expectEqual(1, vectors.version);
    return vectors;
}

fn trust(vectors: *const Vectors, former: ?*const state_delta.Base) !desired_state.TrustAnchor {
    return .{
        .edge_id = vectors.edgeId,
        .signing_key = try key_text.parse(vectors.organizationKey.publicKey),
        .above = vectors.basePair,
        .base = former,
    };
}

test "changes of states get the verdict of the golden ones" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const gpa = arena.allocator();
    const vectors = try load(gpa);
    const former: state_delta.Base = .of(vectors.base);
    var accepted_count: usize = 0;
    for (vectors.cases) |*case| {
        const text = try std.json.Stringify.valueAlloc(gpa, case.answer, .{});
        var received: desired_state.Received = undefined;
        var expected = try trust(&vectors, &former);
        expected.received = &received;
        const result = desired_state.accept(gpa, text, expected);
        if (case.payload) |payload| {
            errdefer std.debug.print("case: {s}\n", .{case.name});
            const state = try result;
            try testing.expectEqualStrings("accepted", case.verdict);
            try testing.expect(received.is_delta);
            try testing.expectEqualStrings(payload, received.envelope.payload);
            try testing.expect(state.devices.len >= 40);
            accepted_count += 1;
            // The disk gets it whole, and an edge without a base reads it.
            const whole = try std.json.Stringify.valueAlloc(gpa, received.envelope, .{});
            expected.base = null;
            try testing.expectEqualDeep(state, try desired_state.accept(gpa, whole, expected));
            try testing.expect(!received.is_delta);
        } else {
            try testing.expectEqualStrings("delta_unfit", case.verdict);
            try testing.expectError(error.DeltaUnfit, result);
        }
    }
    try testing.expect(accepted_count >= 8);
    try testing.expect(vectors.cases.len - accepted_count >= 10);
}

test "a change is refused without a base, on the state that it made, and beside a payload" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const gpa = arena.allocator();
    const vectors = try load(gpa);
    const case = &vectors.cases[0];
    const text = try std.json.Stringify.valueAlloc(gpa, case.answer, .{});
    const made: state_delta.Base = .of(case.payload.?);
    for ([_]?*const state_delta.Base{ null, &made }) |former|
        try testing.expectError(
            error.DeltaUnfit,
            desired_state.accept(gpa, text, try trust(&vectors, former)),
        );
    const former: state_delta.Base = .of(vectors.base);
    var answer = case.answer;
    try answer.object.put(gpa, "payload", .{ .string = case.payload.? });
    const both = try std.json.Stringify.valueAlloc(gpa, answer, .{});
    try testing.expectError(
        error.DeltaUnfit,
        desired_state.accept(gpa, both, try trust(&vectors, &former)),
    );
}

test "edits are applied in their order, and what they make is limited" {
    const gpa = testing.allocator;
    const former: state_delta.Base = .of("abcdef");
    var delta: state_delta.Delta = .{ .base = &former.digest, .edits = &.{
        .{ .at = 0, .remove = 1, .insert = "x" },
        .{ .at = 1, .remove = 0, .insert = "yz" },
        .{ .at = 4, .remove = 2, .insert = "" },
        .{ .at = 6, .remove = 0, .insert = "!" },
    } };
    const payload = try state_delta.apply(gpa, &former, &delta, 7);
    defer gpa.free(payload);
    try testing.expectEqualStrings("xyzbcd!", payload);
    try testing.expectError(error.Unfit, state_delta.apply(gpa, &former, &delta, 6));
    delta.edits = &.{};
    const same = try state_delta.apply(gpa, &former, &delta, 6);
    defer gpa.free(same);
    try testing.expectEqualStrings("abcdef", same);
    delta.base = "";
    try testing.expectError(error.Unfit, state_delta.apply(gpa, &former, &delta, 6));
}
