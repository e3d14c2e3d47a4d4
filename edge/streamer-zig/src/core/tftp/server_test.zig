//! The guarantees of `server.zig`, packet by packet.

const std = @import("std");
const testing = std.testing;
const base = @import("base");
const tftp = @import("wire").tftp;
const TftpServer = @import("server.zig");
const Endpoint = base.Endpoint;

const files: TftpServer.Catalogue.Fixed = .{ .files = &.{
    .{ .name = "undionly.kpxe", .size = 2000 },
    .{ .name = "snponly.efi", .size = 1000 * 1000 },
} };
const device: Endpoint = .{ .ip = .init(10, 0, 0, 7), .port = 2070 };
const second = std.time.us_per_s;

const Bench = struct {
    server: TftpServer,
    now_us: u64 = 1,
    packet_buffer: [1024]u8 = undefined,
    reply_buffer: TftpServer.ReplyBuffer = undefined,

    fn init(options: TftpServer.Options) !Bench {
        return .{ .server = try .init(testing.allocator, files.catalogue(), options) };
    }

    fn deinit(bench: *Bench) void {
        bench.server.deinit(testing.allocator);
    }

    fn send(bench: *Bench, from: Endpoint, packet: tftp.Packet) !TftpServer.Step {
        const bytes = try tftp.emit(&packet, &bench.packet_buffer);
        return bench.server.receive(bench.now_us, from, bytes, &bench.reply_buffer);
    }

    fn request(bench: *Bench, name: []const u8, options: tftp.Options) !TftpServer.Step {
        return bench.send(device, .{ .rrq = .{ .file_name = name, .options = options } });
    }

    /// A transfer whose first window is out.
    fn flowing(bench: *Bench, options: tftp.Options) !TftpServer.Step {
        _ = try bench.request("snponly.efi", options);
        return bench.send(device, .{ .ack = 0 });
    }
};

fn expectBlocks(step: TftpServer.Step, first: u64, count: u16) !void {
    try testing.expectEqual(first, step.send.blocks.first);
    try testing.expectEqual(count, step.send.blocks.count);
}

fn expectError(step: TftpServer.Step, code: tftp.ErrorCode, reason: base.IgnoreReason) !void {
    try testing.expectEqual(reason, step.ignored.?);
    const packet = try tftp.parse(step.send.packet.bytes);
    try testing.expectEqual(code, packet.err.code);
}

fn onlyEvent(step: TftpServer.Step) TftpServer.Event {
    std.debug.assert(step.events.count == 1);
    return step.events.constSlice()[0];
}

test "options are agreed within the server's limits" {
    var bench: Bench = try .init(.{});
    defer bench.deinit();
    const step = try bench.request("b/0123456789abcdef/snponly.efi", .{
        .blksize = 65464,
        .tsize = 0,
        .timeout_s = 3,
        .windowsize = 65535,
    });
    const oack = (try tftp.parse(step.send.packet.bytes)).oack;
    const want: tftp.Options = .{
        .blksize = 1468,
        .tsize = 1000 * 1000,
        .timeout_s = 3,
        .windowsize = 64,
    };
    try testing.expectEqual(want, oack);
    const asked = onlyEvent(step).asked;
    try testing.expectEqual(0x0123456789abcdef, asked.handle.?.value);
    try testing.expectEqual(1, asked.file.source);
    const first = try bench.send(device, .{ .ack = 0 });
    const began = onlyEvent(first).began;
    try testing.expectEqual(0x0123456789abcdef, began.handle.?.value);
    try testing.expectEqual(began.place, first.send.blocks.place);
    try expectBlocks(first, 1, 64);
    try testing.expectEqual(bench.now_us + 3 * second, bench.server.nextDeadline().?);
}

test "without options one block of 512 bytes comes at a time" {
    var bench: Bench = try .init(.{});
    defer bench.deinit();
    const first = try bench.request("undionly.kpxe", .{});
    try expectBlocks(first, 1, 1);
    try testing.expectEqual(512, first.send.blocks.blksize);
    for (1..4) |block| {
        const step = try bench.send(device, .{ .ack = @intCast(block) });
        try expectBlocks(step, block + 1, 1);
    }
    const finished = onlyEvent(try bench.send(device, .{ .ack = 4 })).finished;
    try testing.expectEqual(2000, finished.bytes);
    try testing.expectEqual(0, finished.retries);
    try testing.expect(finished.last_ack_seen);
    try testing.expectEqual(0, bench.server.sessionCount());
    try testing.expectEqual(null, bench.server.nextDeadline());
}

test "a peer that does not answer gets one packet for each of its own and none by time" {
    var bench: Bench = try .init(.{});
    defer bench.deinit();
    for ([_]tftp.Options{ .{}, .{ .blksize = 1432, .windowsize = 64 } }) |options| {
        const first = try bench.request("snponly.efi", options);
        try testing.expectEqual(1, first.events.count);
        for (0..3) |_| {
            const again = try bench.request("snponly.efi", options);
            try testing.expectEqualDeep(first.send, again.send);
            try testing.expectEqual(0, again.events.count);
            switch (again.send) {
                .nothing => return error.TestUnexpectedResult,
                .packet => |packet| try testing.expect(packet.bytes.len < 100),
                .blocks => |blocks| try testing.expectEqual(1, blocks.count),
            }
        }
        bench.now_us += 9 * second;
        try testing.expectEqual(null, bench.server.tick(bench.now_us));
        bench.now_us += second;
        const step = bench.server.tick(bench.now_us).?;
        try testing.expectEqual(.nothing, step.send);
        try testing.expectEqual(.timeout, onlyEvent(step).unanswered.why);
        try testing.expectEqual(null, bench.server.tick(bench.now_us));
    }
}

test "ERROR 8 after the OACK is a question for the size, not a failure" {
    var bench: Bench = try .init(.{});
    defer bench.deinit();
    _ = try bench.request("snponly.efi", .{ .tsize = 0, .blksize = 1468, .windowsize = 4 });
    const refusal: tftp.Error = .{ .code = .option_refused, .text = "User aborted the transfer" };
    const step = try bench.send(device, .{ .err = refusal });
    try testing.expect(onlyEvent(step).size_asked.peer.eql(device));
    try testing.expectEqual(0, bench.server.requestCount());
    const again = try bench.request("snponly.efi", .{ .blksize = 1468 });
    try testing.expectEqual(1, again.events.count);
}

test "an error of the peer ends the transfer with its words" {
    var bench: Bench = try .init(.{});
    defer bench.deinit();
    _ = try bench.flowing(.{ .windowsize = 4 });
    const step = try bench.send(device, .{ .err = .{ .code = .disk_full, .text = "no\x01room" } });
    const failed = onlyEvent(step).failed;
    try testing.expectEqual(.disk_full, failed.why.peer_error.code);
    try testing.expectEqualStrings("no?room", failed.why.peer_error.text.slice());
    const after = try bench.send(device, .{ .ack = 1 });
    try testing.expectEqual(.tftp_unknown_transfer, after.ignored.?);
}

test "only published names are found, whatever the path" {
    var bench: Bench = try .init(.{});
    defer bench.deinit();
    const found = [_][]const u8{
        "undionly.kpxe", "/undionly.kpxe", "/b/00000000000000ff/undionly.kpxe",
    };
    for (found) |name| {
        const step = try bench.request(name, .{});
        try testing.expectEqual(0, step.send.blocks.source);
    }
    const absent = [_][]const u8{
        "x",                                   "../../etc/passwd",
        "./undionly.kpxe",                     "b/0123456789abcdef/../undionly.kpxe",
        "b/0123456789ABCDEF/undionly.kpxe",    "b/0123456789abcdef//undionly.kpxe",
        "undionly.kpxe/",                      "UNDIONLY.KPXE",
        "b/0123456789abcdef/b/ff/snponly.efi", "revocations_sku.efi",
    };
    for (absent) |name| {
        const step = try bench.request(name, .{});
        try expectError(step, .file_not_found, .tftp_file_not_found);
        try testing.expectEqual(.not_found, onlyEvent(step).refused.why);
    }
}

test "writes and text modes are refused with a clear error" {
    var bench: Bench = try .init(.{});
    defer bench.deinit();
    const write = try bench.send(device, .{ .wrq = .{ .file_name = "undionly.kpxe" } });
    try expectError(write, .access_violation, .tftp_not_a_read);
    const request: tftp.Request = .{ .file_name = "undionly.kpxe", .mode = .netascii };
    const text = try bench.send(device, .{ .rrq = request });
    try expectError(text, .illegal_operation, .tftp_not_octet);
    try testing.expectEqual(.not_octet, onlyEvent(text).refused.why);
    try testing.expectEqual(0, bench.server.sessionCount());
}

test "an error is never longer than the packet it answers" {
    var bench: Bench = try .init(.{});
    defer bench.deinit();
    const shortest = [_]tftp.Packet{
        .{ .rrq = .{ .file_name = "x" } },
        .{ .rrq = .{ .file_name = "x", .mode = .mail } },
        .{ .wrq = .{ .file_name = "x", .mode = .mail } },
    };
    for (shortest) |packet| {
        const size = (try tftp.emit(&packet, &bench.packet_buffer)).len;
        const step = try bench.send(device, packet);
        try testing.expect(step.send.packet.bytes.len <= size);
    }
}

test "an ACK inside the window says what is missing" {
    var bench: Bench = try .init(.{});
    defer bench.deinit();
    try expectBlocks(try bench.flowing(.{ .windowsize = 8 }), 1, 8);
    try expectBlocks(try bench.send(device, .{ .ack = 3 }), 4, 8);
    try expectBlocks(try bench.send(device, .{ .ack = 11 }), 12, 8);
    const failed = (try bench.send(device, .{ .err = .{ .code = .not_defined, .text = "" } }));
    try testing.expectEqual(5, onlyEvent(failed).failed.retries);
    try testing.expectEqual(11 * 512, onlyEvent(failed).failed.bytes);
}

test "a repeated ACK brings the window again once, and in lock-step nothing" {
    var bench: Bench = try .init(.{});
    defer bench.deinit();
    _ = try bench.flowing(.{ .windowsize = 8 });
    _ = try bench.send(device, .{ .ack = 8 });
    try expectBlocks(try bench.send(device, .{ .ack = 8 }), 9, 8);
    const again = try bench.send(device, .{ .ack = 8 });
    try testing.expectEqual(.tftp_stale_ack, again.ignored.?);
    bench.now_us += 2 * second;
    _ = try bench.flowing(.{ .windowsize = 1 });
    _ = try bench.send(device, .{ .ack = 1 });
    const apprentice = try bench.send(device, .{ .ack = 1 });
    try testing.expectEqual(.tftp_stale_ack, apprentice.ignored.?);
    try testing.expectEqual(.nothing, apprentice.send);
}

test "an ACK for what was not sent is ignored" {
    var bench: Bench = try .init(.{});
    defer bench.deinit();
    _ = try bench.request("snponly.efi", .{ .windowsize = 4 });
    try testing.expectEqual(.tftp_stale_ack, (try bench.send(device, .{ .ack = 1 })).ignored.?);
    try expectBlocks(try bench.send(device, .{ .ack = 0 }), 1, 4);
    for ([_]u16{ 5, 100, 65535 }) |block| {
        const step = try bench.send(device, .{ .ack = block });
        try testing.expectEqual(.tftp_stale_ack, step.ignored.?);
    }
    const stranger: Endpoint = .{ .ip = device.ip, .port = 9 };
    const step = try bench.send(stranger, .{ .ack = 4 });
    try testing.expectEqual(.tftp_unknown_transfer, step.ignored.?);
}

test "silence brings the window again, ever later, and after 20 s an end" {
    var bench: Bench = try .init(.{});
    defer bench.deinit();
    _ = try bench.flowing(.{ .windowsize = 2 });
    const begun_at_us = bench.now_us;
    var last_us = bench.now_us;
    var pause_us: u64 = 0;
    const failed = for (0..20) |_| {
        bench.now_us = bench.server.nextDeadline().?;
        try testing.expect(bench.now_us - last_us >= pause_us);
        pause_us = bench.now_us - last_us;
        last_us = bench.now_us;
        const step = bench.server.tick(bench.now_us).?;
        if (step.send == .nothing) break onlyEvent(step).failed;
        try expectBlocks(step, 1, 2);
        try testing.expectEqual(null, bench.server.tick(bench.now_us));
    } else return error.TestUnexpectedResult;
    try testing.expectEqual(.timeout, failed.why);
    try testing.expect(failed.retries <= 2 * 12);
    const passed_us = bench.now_us - begun_at_us;
    try testing.expect(passed_us >= 20 * second and passed_us <= 24 * second);
}

test "a time-out that the peer has named is kept to" {
    var bench: Bench = try .init(.{});
    defer bench.deinit();
    _ = try bench.flowing(.{ .windowsize = 2, .timeout_s = 30 });
    for (0..6) |_| {
        const before_us = bench.now_us;
        bench.now_us = bench.server.nextDeadline().?;
        try testing.expectEqual(30 * second, bench.now_us - before_us);
        try expectBlocks(bench.server.tick(bench.now_us).?, 1, 2);
        if (bench.now_us > 150 * second) break;
    }
    bench.now_us = bench.server.nextDeadline().?;
    try testing.expectEqual(.timeout, onlyEvent(bench.server.tick(bench.now_us).?).failed.why);
}

test "a transfer whose last ACK alone is missing has finished" {
    var bench: Bench = try .init(.{});
    defer bench.deinit();
    _ = try bench.request("undionly.kpxe", .{});
    for (1..4) |block| _ = try bench.send(device, .{ .ack = @intCast(block) });
    const finished = for (0..20) |_| {
        bench.now_us = bench.server.nextDeadline().?;
        const step = bench.server.tick(bench.now_us).?;
        if (step.send == .nothing) break onlyEvent(step).finished;
        try expectBlocks(step, 4, 1);
    } else return error.TestUnexpectedResult;
    try testing.expect(!finished.last_ack_seen);
}

test "a new request of the same peer takes the place of its transfer" {
    var bench: Bench = try .init(.{});
    defer bench.deinit();
    _ = try bench.flowing(.{ .windowsize = 2 });
    const step = try bench.request("undionly.kpxe", .{});
    try testing.expectEqual(.superseded, step.events.constSlice()[0].failed.why);
    try testing.expectEqual(0, step.events.constSlice()[1].asked.file.source);
    try testing.expectEqual(0, bench.server.sessionCount());
    try testing.expectEqual(1, bench.server.requestCount());
}

test "a request that the network has doubled does not end its transfer, a later one does" {
    var bench: Bench = try .init(.{});
    defer bench.deinit();
    _ = try bench.flowing(.{ .windowsize = 2 });
    bench.now_us += second / 2;
    const again = try bench.request("snponly.efi", .{ .windowsize = 2 });
    try testing.expectEqual(.tftp_repeated_request, again.ignored.?);
    try testing.expectEqual(.nothing, again.send);
    try expectBlocks(try bench.send(device, .{ .ack = 2 }), 3, 2);
    bench.now_us += second;
    const restarted = try bench.request("snponly.efi", .{ .windowsize = 2 });
    try testing.expectEqual(.superseded, restarted.events.constSlice()[0].failed.why);
}

test "a file whose size has changed before the first ACK is not sent" {
    var bench: Bench = try .init(.{});
    defer bench.deinit();
    _ = try bench.request("snponly.efi", .{ .tsize = 0 });
    const other: TftpServer.Catalogue.Fixed = .{ .files = &.{.{ .name = "snponly.efi", .size = 5 }} };
    bench.server.catalogue = other.catalogue();
    const step = try bench.send(device, .{ .ack = 0 });
    try testing.expectEqual(.not_defined, (try tftp.parse(step.send.packet.bytes)).err.code);
    try testing.expectEqual(.aborted, onlyEvent(step).unanswered.why);
    try testing.expectEqual(1, step.released.constSlice().len);
}

test "what a request opens is released with its first packet, and a transfer's at its end" {
    var bench: Bench = try .init(.{});
    defer bench.deinit();
    const asked = try bench.request("undionly.kpxe", .{ .blksize = 1432 });
    try testing.expectEqual(1, asked.released.constSlice().len);
    const began = try bench.send(device, .{ .ack = 0 });
    try testing.expectEqual(0, began.released.constSlice().len);
    _ = try bench.send(device, .{ .ack = 1 });
    const finished = try bench.send(device, .{ .ack = 2 });
    try testing.expectEqual(1, finished.released.constSlice().len);
}

fn spoofed(number: u32) Endpoint {
    return .{ .ip = .fromInt(0x0a010000 + number), .port = @intCast(1000 + number % 50_000) };
}

test "a flood of requests keeps no device out and ends no transfer" {
    var bench: Bench = try .init(.{ .sessions_max = 4, .requests_max = 64 });
    defer bench.deinit();
    _ = try bench.flowing(.{ .windowsize = 2 });
    for (0..2000) |index| {
        bench.now_us += 50;
        const flood: tftp.Packet = .{ .rrq = .{
            .file_name = "undionly.kpxe",
            .options = .{ .blksize = 1432 },
        } };
        const step = try bench.send(spoofed(@intCast(index)), flood);
        try testing.expect(step.send == .packet);
        try testing.expect(bench.server.requestCount() <= 64);
        try testing.expectEqual(1, bench.server.sessionCount());
    }
    const other: Endpoint = .{ .ip = .init(10, 0, 0, 8), .port = 2070 };
    _ = try bench.send(other, .{ .rrq = .{ .file_name = "snponly.efi", .options = .{ .windowsize = 4 } } });
    // As many strangers as pass in a round trip of 2 ms at 20,000 a second.
    for (2000..2040) |index| _ = try bench.send(spoofed(@intCast(index)), .{
        .rrq = .{ .file_name = "undionly.kpxe", .options = .{ .blksize = 1432 } },
    });
    try expectBlocks(try bench.send(other, .{ .ack = 0 }), 1, 4);
    try expectBlocks(try bench.send(device, .{ .ack = 2 }), 3, 2);
}

test "one address cannot push out the requests of others" {
    var bench: Bench = try .init(.{ .requests_max = 64, .requests_per_source_max = 8 });
    defer bench.deinit();
    _ = try bench.request("snponly.efi", .{ .windowsize = 4 });
    for (0..60) |index| {
        const from: Endpoint = .{ .ip = .init(10, 9, 9, 9), .port = @intCast(1 + index) };
        const step = try bench.send(from, .{
            .rrq = .{ .file_name = "undionly.kpxe", .options = .{ .blksize = 1432 } },
        });
        const is_evicting = step.events.constSlice()[0] == .unanswered;
        try testing.expectEqual(index >= 8, is_evicting);
        try testing.expect(bench.server.requestCount() <= 9);
    }
    try expectBlocks(try bench.send(device, .{ .ack = 0 }), 1, 4);
}

test "a false address gets no more than its allowance, and who answers is not held to it" {
    var bench: Bench = try .init(.{});
    defer bench.deinit();
    const victim: base.Ip4 = .init(10, 5, 5, 5);
    var bytes_in: u64 = 0;
    var bytes_out: u64 = 0;
    for (0..40_000) |index| {
        bench.now_us += 50;
        const from: Endpoint = .{ .ip = victim, .port = @intCast(1 + index) };
        const step = try bench.send(from, .{ .rrq = .{ .file_name = "undionly.kpxe" } });
        bytes_in += 2 + "undionly.kpxe".len + 1 + "octet".len + 1;
        switch (step.send) {
            .nothing => {},
            .packet => |packet| bytes_out += packet.bytes.len,
            .blocks => |blocks| bytes_out += blocks.byteCount(),
        }
    }
    // 2 s: 64 KiB, and 8 KiB for each second.
    try testing.expect(bytes_out <= bytes_in + 64 * 1024 + 2 * 8 * 1024);
    for (0..1000) |index| {
        const from: Endpoint = .{ .ip = .init(10, 6, 6, 6), .port = @intCast(1 + index) };
        const first = try bench.send(from, .{ .rrq = .{ .file_name = "undionly.kpxe" } });
        try expectBlocks(first, 1, 1);
        try expectBlocks(try bench.send(from, .{ .ack = 1 }), 2, 1);
        _ = try bench.send(from, .{ .err = .{ .code = .not_defined, .text = "" } });
    }
}

test "transfers that flow are never evicted, one that stands still is" {
    var bench: Bench = try .init(.{ .sessions_max = 2 });
    defer bench.deinit();
    const other: Endpoint = .{ .ip = .init(10, 0, 0, 8), .port = 1 };
    const third: Endpoint = .{ .ip = .init(10, 0, 0, 9), .port = 1 };
    for ([_]Endpoint{ device, other }) |from| {
        _ = try bench.send(from, .{ .rrq = .{ .file_name = "undionly.kpxe" } });
        _ = try bench.send(from, .{ .ack = 1 });
    }
    _ = try bench.send(third, .{ .rrq = .{ .file_name = "undionly.kpxe" } });
    const busy = try bench.send(third, .{ .ack = 1 });
    try testing.expectEqual(.tftp_busy, busy.ignored.?);
    try testing.expectEqual(.nothing, busy.send);
    bench.now_us += second / 4;
    _ = try bench.send(other, .{ .ack = 2 });
    bench.now_us += second / 4;
    while (bench.server.tick(bench.now_us)) |step| try expectBlocks(step, 2, 1);
    const step = try bench.send(third, .{ .ack = 1 });
    const evicted = step.events.constSlice()[0].failed;
    try testing.expectEqual(.evicted, evicted.why);
    try testing.expect(evicted.transfer.peer.eql(device));
    try expectBlocks(step, 2, 1);
}

test "an address has its share of the transfers" {
    var bench: Bench = try .init(.{ .sessions_per_source_max = 1 });
    defer bench.deinit();
    _ = try bench.flowing(.{ .blksize = 1432 });
    const twin: Endpoint = .{ .ip = device.ip, .port = 5 };
    _ = try bench.send(twin, .{ .rrq = .{ .file_name = "undionly.kpxe" } });
    const limited = try bench.send(twin, .{ .ack = 1 });
    try testing.expectEqual(.tftp_source_limit, limited.ignored.?);
}

test "a file that cannot be read ends the transfer with an error" {
    var bench: Bench = try .init(.{});
    defer bench.deinit();
    _ = try bench.flowing(.{ .blksize = 1432 });
    const step = bench.server.abort(device, &bench.reply_buffer);
    try testing.expectEqual(.aborted, onlyEvent(step).failed.why);
    try testing.expectEqual(.not_defined, (try tftp.parse(step.send.packet.bytes)).err.code);
    try testing.expectEqual(.nothing, bench.server.abort(device, &bench.reply_buffer).send);
}
