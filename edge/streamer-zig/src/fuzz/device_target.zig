//! Fuzzes what runs on a device: the parsers of the kernel's nbd driver and command line, and the
//! queue of block requests, against a model of a kernel that requests and a stream that answers in
//! any order.

const std = @import("std");
const core = @import("core");
const nbd = @import("wire").nbd;
const netlink = @import("wire").nbd_netlink;
const fuzz_case = @import("case.zig");
const Case = fuzz_case.Case;
const Violation = fuzz_case.Violation;
const expect = fuzz_case.expect;
const expectEqual = fuzz_case.expectEqual;

pub fn nbdParser(case: *Case) Violation!bool {
    var bytes = nbd.emitRequest(.{
        .command = @fromBackingInt(case.number() % 9),
        .flags = case.number(),
        .handle = case.prng.nextU64(),
        .offset = case.prng.nextU64(),
        .length = case.prng.nextU32(),
    });
    if (case.prng.chance(1, 2)) _ = case.mutate(&bytes, bytes.len);
    const request = nbd.parseRequest(&bytes) catch return false;
    try expect(std.mem.eql(u8, &bytes, &nbd.emitRequest(request)), "emit(parse(bytes)) == bytes");
    return true;
}

pub fn netlinkParser(case: *Case) Violation!bool {
    var buffer: [netlink.message_size_max]u8 = undefined;
    // 2 is the type of an error, 0x10 of the controller's answer.
    const kind = case.prng.pick(u16, &.{ 2, 0x10 });
    const message = netlink.emitConnect(&buffer, kind, .{
        .index = 0,
        .size_bytes = case.prng.between(1, 1 << 40),
        .block_size_bytes = 512,
        .server_flags = 3,
        .dead_connection_timeout_s = 60,
        .socket = 9,
    });
    const payload = case.mutate(&buffer, message.len);
    return netlink.parseAnswer(payload) != .other;
}

pub fn optionsParser(case: *Case) Violation!bool {
    const good =
        "quiet bootfarm.edge=10.77.0.1:6910 bootfarm.boot=00112233-4455-4677-8899-aabbccddeeff " ++
        "bootfarm.token=000102030405060708090a0b0c0d0e0f root=/dev/nbd0";
    var buffer: [400]u8 = undefined;
    @memcpy(buffer[0..good.len], good);
    const words =
        if (case.prng.chance(1, 8)) buffer[0..good.len] else case.mutate(&buffer, good.len);
    const options = core.target.options.TargetOptions.parse(words) catch |reason| {
        try expect(
            core.target.options.TargetOptions.explain(reason).len > 0,
            "each error has a sentence",
        );
        return false;
    };
    try expect(options.edge.port != 0, "an edge has a port");
    try expect(options.edge.ip.isUnicast(), "an edge has an address of its own");
    return true;
}

const requests_max = 64;
const steps_max = 2000;

/// Checks that every request is answered once, whole, in one piece, with the bytes of its own range
/// in order.
const Model = struct {
    case: *Case,
    queue: core.target.NbdQueue,
    requests: [requests_max]nbd.Request = undefined,
    asked: u32 = 0,
    answered: [requests_max]bool = @splat(false),
    parts: [core.target.nbd_queue.slots_max]?core.target.NbdQueue.Part = @splat(null),
    /// The reply being sent: its request, and how much of it was sent.
    sending: ?struct { request: u32, size: u64 } = null,

    fn ask(model: *Model) void {
        if (model.asked == requests_max or !model.queue.wantsRequest()) return;
        const prng = &model.case.prng;
        const commands = [_]nbd.Command{
            .read,
            .read,
            .read,
            .read,
            .write,
            .flush,
            .trim,
            @fromBackingInt(99),
        };
        const request: nbd.Request = .{
            .command = prng.pick(nbd.Command, &commands),
            .flags = 0,
            .handle = model.asked,
            .offset = prng.below(model.queue.disk_size + 1024),
            .length = @intCast(prng.below(if (prng.chance(1, 8)) 8 << 20 else 256 << 10)),
        };
        model.requests[model.asked] = request;
        model.asked += 1;
        model.queue.take(request);
    }

    fn read(model: *Model) Violation!void {
        const part = model.queue.nextPart() orelse return;
        try expect(model.parts[part.slot] == null, "a slot has one part at a time");
        try expect(
            part.length > 0 and part.length <= core.target.nbd_queue.part_size_max,
            "a part fits its buffer",
        );
        try expect(
            part.offset + part.length <= model.queue.disk_size,
            "a part lies within the disk",
        );
        model.parts[part.slot] = part;
    }

    fn complete(model: *Model) void {
        const slot: u8 = @intCast(model.case.prng.below(model.parts.len));
        if (model.parts[slot] == null or model.queue.slots[slot].state != .reading) return;
        model.queue.complete(slot);
    }

    fn send(model: *Model) Violation!void {
        const piece = model.queue.nextOutgoing() orelse return;
        if (piece.header) |header| {
            try expect(model.sending == null, "a reply begins after the end of the one before");
            const index: u32 = @intCast(header.handle);
            try expect(!model.answered[index], "a request is answered once");
            model.sending = .{ .request = index, .size = 0 };
        }
        try expect(model.sending != null, "bytes follow a header");
        const sending = &model.sending.?;
        const request = model.requests[sending.request];
        if (model.parts[piece.slot]) |part| {
            try expectEqual(
                request.offset + sending.size,
                part.offset,
                "bytes are sent in their order",
            );
            try expectEqual(part.length, piece.length, "a part is sent whole");
        } else try expectEqual(@as(u32, 0), piece.length, "only what was read is sent");
        sending.size += piece.length;
        const is_data = model.parts[piece.slot] != null;
        model.parts[piece.slot] = null;
        model.queue.sent(piece.slot);
        if (is_data and sending.size < request.length) return;
        model.answered[sending.request] = true;
        model.sending = null;
    }
};

pub fn queue(case: *Case) Violation!bool {
    var model: Model = .{ .case = case, .queue = .init(case.prng.between(1, 1 << 16) * 512) };
    for (0..steps_max) |_| switch (case.prng.below(4)) {
        0 => model.ask(),
        1 => try model.read(),
        2 => model.complete(),
        3 => try model.send(),
        else => unreachable,
    };
    // No more requests: all requests are answered.
    for (0..steps_max * 16) |_| switch (case.prng.below(3)) {
        0 => try model.read(),
        1 => model.complete(),
        2 => try model.send(),
        else => unreachable,
    };
    for (model.answered[0..model.asked]) |answered|
        try expect(answered, "every request is answered");
    return model.asked > 0;
}
