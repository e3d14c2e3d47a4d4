//! Fuzzes TFTP: the parser alone, and the server against a model of which peers have answered.

const std = @import("std");
const base = @import("base");
const tftp = @import("wire").tftp;
const core = @import("core");
const TftpServer = core.tftp.Server;
const fuzz_case = @import("case.zig");
const Case = fuzz_case.Case;
const Violation = fuzz_case.Violation;
const expect = fuzz_case.expect;
const expectEqual = fuzz_case.expectEqual;
const Endpoint = base.Endpoint;

const buffer_size = 700;

pub fn parser(case: *Case) Violation!bool {
    var buffer: [buffer_size]u8 = undefined;
    const payload = try makePayload(case, &buffer);
    const packet = parse(case, payload) catch return false;
    switch (packet) {
        .rrq, .wrq => |request| {
            try fuzz_case.expectWithin(request.file_name, payload);
            const path: core.boot.Path = .parse(request.file_name);
            try fuzz_case.expectWithin(path.name, request.file_name);
        },
        .data => |data| try fuzz_case.expectWithin(data.bytes, payload),
        .err => |failure| try fuzz_case.expectWithin(failure.text, payload),
        .ack, .oack => {},
    }
    try survives(case, &packet);
    return true;
}

/// The parser, or with `--canary` a mutant that reads a large windowsize wrong.
fn parse(case: *const Case, payload: []const u8) tftp.ParseError!tftp.Packet {
    var packet = try tftp.parse(payload);
    if (!case.is_canary) return packet;
    switch (packet) {
        .rrq, .wrq => |*request| if (request.options.windowsize) |windowsize| {
            request.options.windowsize = windowsize & 0x7fff;
        },
        .data, .ack, .err, .oack => {},
    }
    return packet;
}

fn makePayload(case: *Case, buffer: []u8) Violation![]u8 {
    if (case.prng.chance(1, 8)) return case.garbage(buffer);
    var text_buffer: [300]u8 = undefined;
    const packet = makePacket(case, &text_buffer);
    const bytes = tftp.emit(&packet, buffer) catch return case.garbage(buffer);
    if (case.prng.chance(1, 4)) {
        try survives(case, &packet);
        return bytes;
    }
    return case.mutate(buffer, bytes.len);
}

fn makePacket(case: *Case, text: *[300]u8) tftp.Packet {
    const prng = &case.prng;
    const options: tftp.Options = .{
        .blksize = case.maybe(@as(u16, @intCast(prng.between(tftp.blksize_min, tftp.blksize_max)))),
        .tsize = case.maybe(prng.nextU64()),
        .timeout_s = case.maybe(@as(u8, @intCast(prng.between(1, 255)))),
        .windowsize = case.maybe(@as(u16, @intCast(prng.between(1, 65535)))),
    };
    const modes = [_]tftp.Mode{ .octet, .netascii, .mail };
    switch (prng.below(6)) {
        0 => return .{ .rrq = .{
            .file_name = case.text(text, 1),
            .mode = prng.pick(tftp.Mode, &modes),
            .options = options,
        } },
        1 => return .{ .wrq = .{ .file_name = case.text(text, 1), .options = options } },
        2 => return .{ .data = .{ .block = case.number(), .bytes = case.garbage(text) } },
        3 => return .{ .ack = case.number() },
        4 => return .{ .err = .{
            .code = @fromBackingInt(case.number()),
            .text = case.text(text, 0),
        } },
        else => return .{ .oack = options },
    }
}

fn survives(case: *const Case, packet: *const tftp.Packet) Violation!void {
    var buffer: [buffer_size + 200]u8 = undefined;
    // A request with trailing zeros or an upper-case mode is emitted shorter; never longer than
    // 512.
    const bytes = tftp.emit(packet, &buffer) catch
        return fuzz_case.violated("a parsed packet can be emitted");
    const again = parse(case, bytes) catch return fuzz_case.violated("an emitted packet is parsed");
    try expectEqual(packet.*, again, "parse(emit(x)) == x");
}

const files: TftpServer.Catalogue.Fixed = .{ .files = &.{
    .{ .name = "a", .size = 0 },
    .{ .name = "undionly.kpxe", .size = 3000 },
    .{ .name = "large", .size = 40_000_000 },
} };
const sessions_max = 4;
const requests_max = 3;
const peer_count = 8;
const events_per_case = 64;
const second = std.time.us_per_s;

/// Packets sent and received by one peer since its transfer began.
const Peer = struct {
    has_answered: bool = false,
    /// Number of the last block sent to it, in 16 bits.
    last_block: u16 = 0,
};

const Model = struct {
    peers: [peer_count]Peer = @splat(.{}),
    is_changing: bool = false,
    /// Transfers, waiting requests, and open files.
    live: u32 = 0,
    waiting: u32 = 0,
    open: u32 = 0,

    fn catalogue(model: *Model) TftpServer.Catalogue {
        return .{ .context = model, .open = openCounted };
    }

    fn openCounted(
        context: *anyopaque,
        question: *const TftpServer.FileQuery,
    ) TftpServer.Catalogue.OpenError!TftpServer.File {
        const model: *Model = @ptrCast(@alignCast(context));
        const fixed = files.catalogue();
        const file = try fixed.open(fixed.context, question);
        // A file that changed between the first packet and its answer is not sent.
        const shift: u64 = if (question.is_confirmed and model.is_changing) 1 else 0;
        model.open += 1;
        return .{ .size = file.size + shift, .source = file.source };
    }

    fn of(model: *Model, endpoint: Endpoint) *Peer {
        return &model.peers[endpoint.port - 1000];
    }
};

fn peerAddress(index: u64) Endpoint {
    const ip: base.Ip4 = .fromInt(@intCast(0x0a000001 + index / 3));
    return .{ .ip = ip, .port = @intCast(1000 + index) };
}

pub fn server(case: *Case) Violation!bool {
    const prng = &case.prng;
    var model: Model = .{ .is_changing = prng.chance(1, 16) };
    var machine = TftpServer.init(case.gpa, model.catalogue(), .{
        .sessions_max = sessions_max,
        .sessions_per_source_max = 2,
        .requests_max = requests_max,
        .requests_per_source_max = 2,
    }) catch return fuzz_case.violated("a server of this size can be made");
    defer machine.deinit(case.gpa);
    var now_us: u64 = 1;
    var has_finished = false;
    for (0..events_per_case) |_| {
        now_us += prng.below(if (prng.chance(1, 8)) 6 * second else 100);
        if (prng.chance(1, 4)) {
            while (machine.tick(now_us)) |step| try checkTick(&model, &step);
        } else {
            const peer = peerAddress(prng.below(peer_count));
            var buffer: [buffer_size]u8 = undefined;
            const datagram = try makeRequest(case, model.of(peer), &buffer);
            has_finished = try exchange(&machine, &model, now_us, peer, datagram) or has_finished;
        }
        const waiting = machine.requests.count;
        try expectEqual(model.waiting, waiting, "each request waits once and is settled once");
        try expect(waiting <= requests_max, "the table of requests is bounded");
        try expectEqual(model.open, machine.session_count, "only transfers hold a file");
        const live = machine.session_count;
        try expectEqual(model.live, live, "each transfer begins once and ends once");
        try expect(model.live <= sessions_max, "the table of transfers is bounded");
    }
    return has_finished;
}

fn makeRequest(case: *Case, peer: *const Peer, buffer: []u8) Violation![]u8 {
    const prng = &case.prng;
    const names =
        [_][]const u8{ "a", "/undionly.kpxe", "b/0123456789abcdef/large", "../a", "nothing" };
    const codes = [_]tftp.ErrorCode{ .option_refused, .disk_full };
    const near: u16 = peer.last_block -% @as(u16, @intCast(prng.below(6)));
    const packet: tftp.Packet = switch (prng.below(8)) {
        0, 1 => .{ .rrq = .{ .file_name = prng.pick([]const u8, &names), .options = .{
            .blksize = case.maybe(@as(u16, @intCast(prng.between(8, 2000)))),
            .tsize = case.maybe(@as(u64, 0)),
            .windowsize = case.maybe(@as(u16, @intCast(prng.between(1, 100)))),
            .timeout_s = case.maybe(@as(u8, 1)),
        } } },
        2 => .{ .ack = 0 },
        3, 4, 5 => .{ .ack = peer.last_block },
        6 => .{ .ack = near },
        else => .{ .err = .{ .code = prng.pick(tftp.ErrorCode, &codes), .text = "x" } },
    };
    const bytes = tftp.emit(&packet, buffer) catch unreachable;
    return if (prng.chance(1, 16)) case.mutate(buffer, bytes.len) else bytes;
}

fn exchange(
    machine: *TftpServer,
    model: *Model,
    now_us: u64,
    from: Endpoint,
    datagram: []const u8,
) Violation!bool {
    var reply_buffer: TftpServer.ReplyBuffer = undefined;
    const peer = model.of(from);
    if (tftp.parse(datagram)) |packet| {
        if (packet == .ack) peer.has_answered = true;
    } else |_| {}
    const step = machine.receive(now_us, from, datagram, &reply_buffer);
    const has_finished = try countEvents(model, &step);
    switch (step.send) {
        .nothing => {},
        .packet => |packet| {
            try expectEqual(from, packet.to, "a packet goes to the peer that asked");
            const parsed = tftp.parse(packet.bytes) catch
                return fuzz_case.violated("an answer can be parsed");
            switch (parsed) {
                // A peer that has answered may get a sentence.
                .err => {
                    const sentence: usize = if (peer.has_answered) 48 else 0;
                    try expect(
                        packet.bytes.len <= @max(datagram.len, sentence),
                        "an error is short",
                    );
                },
                // Only by the digits of `tsize`.
                .oack => try expect(packet.bytes.len <= datagram.len + 20, "an OACK is short"),
                else => try expect(false, "a packet is an error or an OACK"),
            }
        },
        .blocks => |blocks| {
            try expectEqual(from, blocks.to, "blocks go to the peer that asked");
            if (!peer.has_answered)
                try expect(blocks.count == 1, "a peer that has not answered gets one packet");
            try checkBlocks(model, &blocks);
        },
    }
    return has_finished;
}

fn checkTick(model: *Model, step: *const TftpServer.Step) Violation!void {
    _ = try countEvents(model, step);
    switch (step.send) {
        .nothing => {},
        .packet => try expect(false, "time brings only blocks again"),
        .blocks => |blocks| {
            try expect(model.of(blocks.to).has_answered, "time brings a silent peer nothing");
            try checkBlocks(model, &blocks);
        },
    }
}

fn checkBlocks(model: *Model, blocks: *const TftpServer.Blocks) Violation!void {
    const file = files.files[blocks.source];
    try expect(blocks.count >= 1, "blocks are not none");
    try expect(blocks.count <= 64, "a window has at most 64 blocks");
    try expect(blocks.blksize <= 1468, "a block fits an Ethernet packet");
    var iterator = blocks.iterate();
    while (iterator.next()) |block| {
        try expect(block.size <= blocks.blksize, "a block is not larger than agreed");
        try expect(block.offset + block.size <= file.size, "a block lies within its file");
        const is_last = block.offset + block.size == file.size;
        if (block.size < blocks.blksize) try expect(is_last, "only the last block is short");
        const number = std.mem.readInt(u16, block.header[2..4], .big);
        model.of(blocks.to).last_block = number;
    }
}

/// Returns true when a transfer has finished.
fn countEvents(model: *Model, step: *const TftpServer.Step) Violation!bool {
    var has_finished = false;
    for (step.events.constSlice()) |event| switch (event) {
        .requested => |transfer| {
            model.waiting += 1;
            model.of(transfer.peer).* = .{};
        },
        .started => |transfer| {
            try settle(model);
            model.live += 1;
            model.of(transfer.peer).* = .{ .has_answered = true };
        },
        .size_queried, .unanswered => try settle(model),
        .finished => {
            has_finished = true;
            try end(model);
        },
        .failed => try end(model),
        .refused => try expect(step.ignored != null, "what is refused is counted"),
    };
    for (step.released.constSlice()) |_| {
        try expect(model.open > 0, "only what is open is released");
        model.open -= 1;
    }
    return has_finished;
}

fn settle(model: *Model) Violation!void {
    try expect(model.waiting > 0, "only a request that waits can be settled");
    model.waiting -= 1;
}

fn end(model: *Model) Violation!void {
    try expect(model.live > 0, "only what has begun can end");
    model.live -= 1;
}
