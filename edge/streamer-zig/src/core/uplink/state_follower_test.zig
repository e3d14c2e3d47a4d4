//! Tests of state_follower.zig: an edge polls a control plane that changes its state, while answers
//! are lost or damaged, memory and disk fail, and the control plane sends changes of other states.

const std = @import("std");
const base = @import("base");
const desired_state = @import("desired_state.zig");
const state_delta = @import("state_delta.zig");
const sender = @import("sender.zig");
const StateFollower = @import("state_follower.zig");
const testing = std.testing;
const Ed25519 = base.Ed25519;

const edge_id = "0190f3a0-0000-7000-8000-000000000001";
const devices = 12;

const Fault = enum {
    none,
    /// The control plane has sent the state, and the edge hears nothing.
    answer_lost,
    signature_damaged,
    /// An edit is not the one that leads to what was signed.
    edit_damaged,
    /// A change of the state before the one that the edge names, or to a poll that names none.
    change_of_another,
    disk_refuses,
    /// A byte of what the edge has in memory flips.
    memory_damaged,
};

/// Replaces its state by another one, and remembers which was replaced last.
const Plane = struct {
    arena: std.mem.Allocator,
    prng: *base.Prng,
    key: Ed25519.KeyPair,
    counter: u64 = 0,
    /// The newest last.
    payloads: [3][]const u8 = @splat(""),

    fn change(plane: *Plane) !void {
        plane.counter += 1;
        var out: std.Io.Writer.Allocating = .init(plane.arena);
        try out.writer.print(
            \\{{"schema":1,"edgeId":"{s}","incarnation":1,"counter":{d},"siteName":"",
            \\"organizationId":"0190f3a0-0000-7000-8000-000000000002",
            \\"siteId":"0190f3a0-0000-7000-8000-000000000003",
            \\"issuedUnixMs":1,"unknownDevices":"ignore","vdisks":[],"storeJobs":[],"powerOns":[],"devices":[
        , .{ edge_id, plane.counter });
        const changed = plane.prng.below(devices);
        for (0..devices) |number| try out.writer.print(
            \\{s}{{"id":"0190f3a0-0000-7000-8000-0000000001{d:0>2}","name":"{d}","mac":"02:bf:00:00:00:{d:0>2}",
            \\"versionId":"0190f3a0-0000-7000-8000-000000000005","enabled":true}}
        , .{
            if (number == 0) "" else ",",
            number,
            if (number == changed) plane.counter else 0,
            number,
        });
        try out.writer.writeAll("]}");
        plane.payloads = .{ plane.payloads[1], plane.payloads[2], out.written() };
    }

    const Poll = struct { above: desired_state.Pair, digest: ?[]const u8 };

    /// Returns the body of the answer; null: there is nothing new.
    fn answer(plane: *Plane, poll: Poll, fault: Fault) !?[]const u8 {
        if (poll.above.counter == plane.counter) return null;
        const latest = plane.payloads[2];
        var signature = try plane.sign(latest);
        if (fault == .signature_damaged) signature[10] = if (signature[10] == 'A') 'B' else 'A';
        const replaced: state_delta.Base = .of(plane.payloads[1]);
        const is_named = if (poll.digest) |named|
            std.mem.eql(u8, named, &replaced.digest)
        else
            false;
        var out: std.Io.Writer.Allocating = .init(plane.arena);
        const signed = @as([]const u8, &signature);
        if (!is_named and fault != .change_of_another) {
            const whole = .{ .payload = latest, .signature = signed, .keyId = edge_id };
            try std.json.Stringify.value(whole, .{}, &out.writer);
            return out.written();
        }
        const is_another = fault == .change_of_another;
        const of: state_delta.Base = if (is_another) .of(plane.payloads[0]) else replaced;
        var edit = editBetween(of.payload, latest);
        if (fault == .edit_damaged) edit.at += 1;
        const delta = .{ .base = @as([]const u8, &of.digest), .edits = &[_]state_delta.Edit{edit} };
        const change_of = .{ .delta = delta, .signature = signed, .keyId = edge_id };
        try std.json.Stringify.value(change_of, .{}, &out.writer);
        return out.written();
    }

    fn sign(plane: *Plane, payload: []const u8) ![88]u8 {
        const signed = try std.mem.concat(plane.arena, u8, &.{ "bootfarm-state-v1\n", payload });
        var text: [88]u8 = undefined;
        _ = std.base64.standard.Encoder.encode(&text, &plane.key.sign(signed).toBytes());
        return text;
    }
};

/// One edit: what lies between the common begin and the common end.
fn editBetween(from: []const u8, to: []const u8) state_delta.Edit {
    const shorter = @min(from.len, to.len);
    var begin: usize = 0;
    while (begin < shorter and from[begin] == to[begin]) begin += 1;
    var end: usize = 0;
    while (end < shorter - begin and from[from.len - 1 - end] == to[to.len - 1 - end]) end += 1;
    return .{ .at = begin, .remove = from.len - begin - end, .insert = to[begin .. to.len - end] };
}

const Edge = struct {
    follower: StateFollower,
    now_ms: u64 = 1000,
    above: desired_state.Pair = .{},
    /// The payload of the state that was kept last.
    on_disk: []const u8 = "",
    is_memory_damaged: bool = false,
    changes: u32 = 0,
    unfit: u32 = 0,
    /// Polls in a row that did not wait for anything, and brought nothing.
    hasty: u32 = 0,

    /// Waits until the next poll, sends it, and takes the answer.
    fn poll(edge: *Edge, plane: *Plane, fault: Fault) !void {
        const follower = &edge.follower;
        switch (follower.poller.next(edge.now_ms)) {
            .poll => {},
            .wait_until_ms => |until_ms| {
                edge.now_ms = until_ms;
                edge.hasty = 0;
            },
            .stopped => return error.Stopped,
        }
        if (fault == .memory_damaged) if (follower.former) |*former| {
            const payload = @constCast(former.payload);
            payload[@intCast(plane.prng.below(payload.len))] ^= 1;
            edge.is_memory_damaged = true;
        };
        const request = follower.poller.plan(edge.now_ms, 0, plane.prng.nextU64());
        const former = follower.baseOf(&request);
        if (former) |named| {
            const is_whole = edge.is_memory_damaged or std.mem.eql(u8, edge.on_disk, named.payload);
            try testing.expect(is_whole);
            try testing.expectEqual(state_delta.digestOf(edge.on_disk), named.digest);
        }
        const asked: Plane.Poll =
            .{ .above = edge.above, .digest = if (former) |named| &named.digest else null };
        const text = try plane.answer(asked, fault);
        edge.hasty += 1;
        if (fault == .answer_lost) return edge.end(.nothing, false);
        if (text) |body| return edge.end(.ok, try edge.take(plane, body, former, fault));
        edge.end(.ok, true);
        edge.wait(request.wait_ms);
    }

    fn wait(edge: *Edge, for_ms: u64) void {
        edge.now_ms += for_ms;
        edge.hasty = 0;
    }

    fn take(
        edge: *Edge,
        plane: *Plane,
        body: []const u8,
        former: ?*const state_delta.Base,
        fault: Fault,
    ) !bool {
        var received: desired_state.Received = undefined;
        const state = desired_state.accept(plane.arena, body, .{
            .edge_id = base.Uuid.parse(edge_id) catch unreachable,
            .signing_key = plane.key.public_key.toBytes(),
            .above = edge.above,
            .base = former,
            .received = &received,
        }) catch |refusal| {
            if (refusal == error.DeltaUnfit) edge.unfit += 1;
            const is_whole = former == null and fault != .change_of_another;
            try testing.expect(refusal == error.DeltaUnfit or fault == .signature_damaged);
            try testing.expect(refusal != error.DeltaUnfit or !is_whole);
            return edge.follower.onRefused(edge.now_ms, refusal);
        };
        try testing.expectEqualStrings(plane.payloads[2], received.envelope.payload);
        try testing.expect(state.counter > edge.above.counter);
        if (fault == .disk_refuses) return false;
        edge.hasty = 0;
        edge.above = state.pair();
        edge.on_disk = received.envelope.payload;
        edge.follower.onKept(edge.on_disk);
        edge.is_memory_damaged = false;
        edge.changes += @intFromBool(received.is_delta);
        return true;
    }

    fn end(edge: *Edge, answer: sender.Answer, usable: bool) void {
        _ = edge.follower.poller.answered(edge.now_ms, 0, answer, usable);
    }
};

const separate_ms = 10 * 60_000;

test "an edge follows its control plane whatever is lost or damaged, by changes as soon as it can, and in no hurry" {
    var changes: u32 = 0;
    var unfit: u32 = 0;
    for (1..7) |seed| {
        var arena: std.heap.ArenaAllocator = .init(testing.allocator);
        defer arena.deinit();
        var prng: base.Prng = .init(seed);
        var plane: Plane = .{
            .arena = arena.allocator(),
            .prng = &prng,
            .key = try .generateDeterministic(@splat(9)),
        };
        var edge: Edge = .{ .follower = .{ .gpa = testing.allocator } };
        defer edge.follower.deinit();
        for (0..40) |_| {
            if (prng.chance(1, 2)) try plane.change();
            if (prng.chance(1, 8)) edge.wait(separate_ms);
            const is_faulty = plane.counter > 2 and prng.chance(1, 2);
            const fault: Fault = if (is_faulty)
                @fromBackingInt(@as(u3, @intCast(prng.below(std.enums.values(Fault).len))))
            else
                .none;
            try edge.poll(&plane, fault);
            // One for the whole state, at once, after a change that did not fit.
            try testing.expect(edge.hasty <= 2);
        }
        // From now on everything works.
        try plane.change();
        for (0..2) |_| try edge.poll(&plane, .none);
        try testing.expectEqual(plane.counter, edge.above.counter);
        edge.wait(separate_ms);
        const before = edge.changes;
        for (0..3) |_| {
            try plane.change();
            try edge.poll(&plane, .none);
            try testing.expectEqual(plane.counter, edge.above.counter);
        }
        try testing.expectEqual(before + 3, edge.changes);
        changes += before;
        unfit += edge.unfit;
    }
    try testing.expect(changes > 10);
    try testing.expect(unfit > 10);
}

test "an edge without memory for a payload names none, and one with it names what is on its disk" {
    var failing: testing.FailingAllocator = .init(testing.allocator, .{ .fail_index = 1 });
    var follower: StateFollower = .{ .gpa = failing.allocator() };
    defer follower.deinit();
    const request = follower.poller.plan(0, 0, 0);
    try testing.expectEqual(null, follower.baseOf(&request));
    follower.onKept("one");
    try testing.expectEqualStrings("one", follower.baseOf(&request).?.payload);
    follower.onKept("two");
    try testing.expectEqual(null, follower.baseOf(&request));
}

test "only a change that does not fit has the whole state requested at once, and then none names a base" {
    var follower: StateFollower = .{ .gpa = testing.allocator };
    defer follower.deinit();
    follower.onKept("one");
    try testing.expect(!follower.onRefused(0, error.SignatureInvalid));
    const request = follower.poller.plan(0, 0, 0);
    try testing.expect(follower.baseOf(&request) != null);
    try testing.expect(follower.onRefused(0, error.DeltaUnfit));
    const whole = follower.poller.plan(0, 0, 0);
    try testing.expectEqual(null, follower.baseOf(&whole));
    try testing.expect(!follower.onRefused(0, error.DeltaUnfit));
}
