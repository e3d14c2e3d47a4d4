//! Tests of server.zig, packet by packet.

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

const ServerFixture = struct {
    server: TftpServer,
    now_us: u64 = 1,
    packet_buffer: [1024]u8 = undefined,
    reply_buffer: TftpServer.ReplyBuffer = undefined,

    fn init(options: TftpServer.Options) !ServerFixture {
        return .{ .server = try .init(testing.allocator, files.catalogue(), options) };
    }

    fn deinit(fixture: *ServerFixture) void {
        fixture.server.deinit(testing.allocator);
    }

    fn send(fixture: *ServerFixture, from: Endpoint, packet: tftp.Packet) !TftpServer.Step {
        const bytes = try tftp.emit(&packet, &fixture.packet_buffer);
        return fixture.server.receive(fixture.now_us, from, bytes, &fixture.reply_buffer);
    }

    fn request(fixture: *ServerFixture, name: []const u8, options: tftp.Options) !TftpServer.Step {
        return fixture.send(device, .{ .rrq = .{ .file_name = name, .options = options } });
    }

    /// A transfer whose first window is in flight.
    fn flowing(fixture: *ServerFixture, options: tftp.Options) !TftpServer.Step {
        _ = try fixture.request("snponly.efi", options);
        return fixture.send(device, .{ .ack = 0 });
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
    var fixture: ServerFixture = try .init(.{});
    defer fixture.deinit();
    const step = try fixture.request("b/0123456789abcdef/snponly.efi", .{
        .blksize = 65464,
        .tsize = 0,
        .timeout_s = 3,
        .windowsize = 65535,
    });
    const oack = (try tftp.parse(step.send.packet.bytes)).oack;
    const want: tftp.Options =
        .{ .blksize = 1468, .tsize = 1000 * 1000, .timeout_s = 3, .windowsize = 64 };
    try testing.expectEqual(want, oack);
    const requested = onlyEvent(step).requested;
    try testing.expectEqual(0x0123456789abcdef, requested.handle.?.value);
    try testing.expectEqual(1, requested.file.source);
    const first = try fixture.send(device, .{ .ack = 0 });
    const began = onlyEvent(first).started;
    try testing.expectEqual(0x0123456789abcdef, began.handle.?.value);
    try testing.expectEqual(began.slot, first.send.blocks.slot);
    try expectBlocks(first, 1, 64);
    try testing.expectEqual(fixture.now_us + 3 * second, fixture.server.nextDeadline().?);
}

test "without options one block of 512 bytes is sent at a time" {
    var fixture: ServerFixture = try .init(.{});
    defer fixture.deinit();
    const first = try fixture.request("undionly.kpxe", .{});
    try expectBlocks(first, 1, 1);
    try testing.expectEqual(512, first.send.blocks.blksize);
    for (1..4) |block| {
        const step = try fixture.send(device, .{ .ack = @intCast(block) });
        try expectBlocks(step, block + 1, 1);
    }
    const finished = onlyEvent(try fixture.send(device, .{ .ack = 4 })).finished;
    try testing.expectEqual(2000, finished.bytes);
    try testing.expectEqual(0, finished.retries);
    try testing.expect(finished.last_ack_seen);
    try testing.expectEqual(0, fixture.server.session_count);
    try testing.expectEqual(null, fixture.server.nextDeadline());
}

test "a peer waits for the blocks of its latest window, and for no others" {
    var fixture: ServerFixture = try .init(.{});
    defer fixture.deinit();
    const options: tftp.Options = .{ .blksize = 512, .windowsize = 4 };
    const first = (try fixture.flowing(options)).send.blocks;
    try testing.expect(fixture.server.awaits(&first));
    const second_window = (try fixture.send(device, .{ .ack = 4 })).send.blocks;
    try testing.expect(!fixture.server.awaits(&first));
    try testing.expect(fixture.server.awaits(&second_window));
    // The same peer begins again, with the same slot and the same file.
    fixture.now_us += 20 * second;
    const smaller: tftp.Options = .{ .blksize = 256, .windowsize = 4 };
    const again = (try fixture.flowing(smaller)).send.blocks;
    try testing.expectEqual(first.slot, again.slot);
    try testing.expect(!fixture.server.awaits(&first));
    try testing.expect(fixture.server.awaits(&again));
    _ = try fixture.send(device, .{ .err = .{ .code = .not_defined, .text = "" } });
    try testing.expect(!fixture.server.awaits(&again));
}

test "a peer that does not answer gets one packet for each of its own and none by time" {
    var fixture: ServerFixture = try .init(.{});
    defer fixture.deinit();
    for ([_]tftp.Options{ .{}, .{ .blksize = 1432, .windowsize = 64 } }) |options| {
        const first = try fixture.request("snponly.efi", options);
        try testing.expectEqual(1, first.events.count);
        for (0..3) |_| {
            const again = try fixture.request("snponly.efi", options);
            try testing.expectEqualDeep(first.send, again.send);
            try testing.expectEqual(0, again.events.count);
            switch (again.send) {
                .nothing => return error.TestUnexpectedResult,
                .packet => |packet| try testing.expect(packet.bytes.len < 100),
                .blocks => |blocks| try testing.expectEqual(1, blocks.count),
            }
        }
        fixture.now_us += 9 * second;
        try testing.expectEqual(null, fixture.server.tick(fixture.now_us));
        fixture.now_us += second;
        const step = fixture.server.tick(fixture.now_us).?;
        try testing.expectEqual(.nothing, step.send);
        try testing.expectEqual(.timeout, onlyEvent(step).unanswered.why);
        try testing.expectEqual(null, fixture.server.tick(fixture.now_us));
    }
}

test "ERROR 8 after the OACK is a query for the size, not a failure" {
    var fixture: ServerFixture = try .init(.{});
    defer fixture.deinit();
    _ = try fixture.request("snponly.efi", .{ .tsize = 0, .blksize = 1468, .windowsize = 4 });
    const refusal: tftp.Error = .{ .code = .option_refused, .text = "User aborted the transfer" };
    const step = try fixture.send(device, .{ .err = refusal });
    try testing.expect(onlyEvent(step).size_queried.peer.eql(device));
    try testing.expectEqual(0, fixture.server.requests.count);
    const again = try fixture.request("snponly.efi", .{ .blksize = 1468 });
    try testing.expectEqual(1, again.events.count);
}

test "an error of the peer ends the transfer with its text" {
    var fixture: ServerFixture = try .init(.{});
    defer fixture.deinit();
    _ = try fixture.flowing(.{ .windowsize = 4 });
    const step =
        try fixture.send(device, .{ .err = .{ .code = .disk_full, .text = "no\x01room" } });
    const failed = onlyEvent(step).failed;
    try testing.expectEqual(.disk_full, failed.why.peer_error.code);
    try testing.expectEqualStrings("no?room", failed.why.peer_error.text.slice());
    const after = try fixture.send(device, .{ .ack = 1 });
    try testing.expectEqual(.tftp_unknown_transfer, after.ignored.?);
}

test "only published names are found, whatever the path" {
    var fixture: ServerFixture = try .init(.{});
    defer fixture.deinit();
    const found =
        [_][]const u8{ "undionly.kpxe", "/undionly.kpxe", "/b/00000000000000ff/undionly.kpxe" };
    for (found) |name| {
        const step = try fixture.request(name, .{});
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
        const step = try fixture.request(name, .{});
        try expectError(step, .file_not_found, .tftp_file_not_found);
        try testing.expectEqual(.not_found, onlyEvent(step).refused.why);
    }
}

test "writes and text modes are refused with a clear error" {
    var fixture: ServerFixture = try .init(.{});
    defer fixture.deinit();
    const write = try fixture.send(device, .{ .wrq = .{ .file_name = "undionly.kpxe" } });
    try expectError(write, .access_violation, .tftp_not_a_read);
    const request: tftp.Request = .{ .file_name = "undionly.kpxe", .mode = .netascii };
    const text = try fixture.send(device, .{ .rrq = request });
    try expectError(text, .illegal_operation, .tftp_not_octet);
    try testing.expectEqual(.not_octet, onlyEvent(text).refused.why);
    try testing.expectEqual(0, fixture.server.session_count);
}

test "an error is never longer than the packet it answers" {
    var fixture: ServerFixture = try .init(.{});
    defer fixture.deinit();
    const shortest = [_]tftp.Packet{
        .{ .rrq = .{ .file_name = "x" } },
        .{ .rrq = .{ .file_name = "x", .mode = .mail } },
        .{ .wrq = .{ .file_name = "x", .mode = .mail } },
    };
    for (shortest) |packet| {
        const size = (try tftp.emit(&packet, &fixture.packet_buffer)).len;
        const step = try fixture.send(device, packet);
        try testing.expect(step.send.packet.bytes.len <= size);
    }
}

test "an ACK inside the window reveals what is missing" {
    var fixture: ServerFixture = try .init(.{});
    defer fixture.deinit();
    try expectBlocks(try fixture.flowing(.{ .windowsize = 8 }), 1, 8);
    try expectBlocks(try fixture.send(device, .{ .ack = 3 }), 4, 8);
    try expectBlocks(try fixture.send(device, .{ .ack = 11 }), 12, 8);
    const failed = (try fixture.send(device, .{ .err = .{ .code = .not_defined, .text = "" } }));
    try testing.expectEqual(5, onlyEvent(failed).failed.retries);
    try testing.expectEqual(11 * 512, onlyEvent(failed).failed.bytes);
}

test "a duplicate ACK retransmits the window once, and in lock-step nothing" {
    var fixture: ServerFixture = try .init(.{});
    defer fixture.deinit();
    _ = try fixture.flowing(.{ .windowsize = 8 });
    _ = try fixture.send(device, .{ .ack = 8 });
    try expectBlocks(try fixture.send(device, .{ .ack = 8 }), 9, 8);
    const again = try fixture.send(device, .{ .ack = 8 });
    try testing.expectEqual(.tftp_stale_ack, again.ignored.?);
    fixture.now_us += 2 * second;
    _ = try fixture.flowing(.{ .windowsize = 1 });
    _ = try fixture.send(device, .{ .ack = 1 });
    const apprentice = try fixture.send(device, .{ .ack = 1 });
    try testing.expectEqual(.tftp_stale_ack, apprentice.ignored.?);
    try testing.expectEqual(.nothing, apprentice.send);
}

test "an ACK for a block that was not sent is ignored" {
    var fixture: ServerFixture = try .init(.{});
    defer fixture.deinit();
    _ = try fixture.request("snponly.efi", .{ .windowsize = 4 });
    try testing.expectEqual(.tftp_stale_ack, (try fixture.send(device, .{ .ack = 1 })).ignored.?);
    try expectBlocks(try fixture.send(device, .{ .ack = 0 }), 1, 4);
    for ([_]u16{ 5, 100, 65535 }) |block| {
        const step = try fixture.send(device, .{ .ack = block });
        try testing.expectEqual(.tftp_stale_ack, step.ignored.?);
    }
    const attacker: Endpoint = .{ .ip = device.ip, .port = 9 };
    const step = try fixture.send(attacker, .{ .ack = 4 });
    try testing.expectEqual(.tftp_unknown_transfer, step.ignored.?);
}

test "silence retransmits the window, ever later, and ends the transfer after 20 s" {
    var fixture: ServerFixture = try .init(.{});
    defer fixture.deinit();
    _ = try fixture.flowing(.{ .windowsize = 2 });
    const begun_at_us = fixture.now_us;
    var last_us = fixture.now_us;
    var pause_us: u64 = 0;
    const failed = for (0..20) |_| {
        fixture.now_us = fixture.server.nextDeadline().?;
        try testing.expect(fixture.now_us - last_us >= pause_us);
        pause_us = fixture.now_us - last_us;
        last_us = fixture.now_us;
        const step = fixture.server.tick(fixture.now_us).?;
        if (step.send == .nothing) break onlyEvent(step).failed;
        try expectBlocks(step, 1, 2);
        try testing.expectEqual(null, fixture.server.tick(fixture.now_us));
    } else return error.TestUnexpectedResult;
    try testing.expectEqual(.timeout, failed.why);
    try testing.expect(failed.retries <= 2 * 12);
    const passed_us = fixture.now_us - begun_at_us;
    try testing.expect(passed_us >= 20 * second and passed_us <= 24 * second);
}

test "a timeout that the peer has named is used" {
    var fixture: ServerFixture = try .init(.{});
    defer fixture.deinit();
    _ = try fixture.flowing(.{ .windowsize = 2, .timeout_s = 30 });
    for (0..6) |_| {
        const before_us = fixture.now_us;
        fixture.now_us = fixture.server.nextDeadline().?;
        try testing.expectEqual(30 * second, fixture.now_us - before_us);
        try expectBlocks(fixture.server.tick(fixture.now_us).?, 1, 2);
        if (fixture.now_us > 150 * second) break;
    }
    fixture.now_us = fixture.server.nextDeadline().?;
    try testing.expectEqual(.timeout, onlyEvent(fixture.server.tick(fixture.now_us).?).failed.why);
}

test "a transfer that lacks only its last ACK has finished" {
    var fixture: ServerFixture = try .init(.{});
    defer fixture.deinit();
    _ = try fixture.request("undionly.kpxe", .{});
    for (1..4) |block| _ = try fixture.send(device, .{ .ack = @intCast(block) });
    const finished = for (0..20) |_| {
        fixture.now_us = fixture.server.nextDeadline().?;
        const step = fixture.server.tick(fixture.now_us).?;
        if (step.send == .nothing) break onlyEvent(step).finished;
        try expectBlocks(step, 4, 1);
    } else return error.TestUnexpectedResult;
    try testing.expect(!finished.last_ack_seen);
}

test "a new request of the same peer supersedes its transfer" {
    var fixture: ServerFixture = try .init(.{});
    defer fixture.deinit();
    _ = try fixture.flowing(.{ .windowsize = 2 });
    const step = try fixture.request("undionly.kpxe", .{});
    try testing.expectEqual(.superseded, step.events.constSlice()[0].failed.why);
    try testing.expectEqual(0, step.events.constSlice()[1].requested.file.source);
    try testing.expectEqual(0, fixture.server.session_count);
    try testing.expectEqual(1, fixture.server.requests.count);
}

test "a duplicated request does not end its transfer, a later one does" {
    var fixture: ServerFixture = try .init(.{});
    defer fixture.deinit();
    _ = try fixture.flowing(.{ .windowsize = 2 });
    fixture.now_us += second / 2;
    const again = try fixture.request("snponly.efi", .{ .windowsize = 2 });
    try testing.expectEqual(.tftp_repeated_request, again.ignored.?);
    try testing.expectEqual(.nothing, again.send);
    try expectBlocks(try fixture.send(device, .{ .ack = 2 }), 3, 2);
    fixture.now_us += second;
    const restarted = try fixture.request("snponly.efi", .{ .windowsize = 2 });
    try testing.expectEqual(.superseded, restarted.events.constSlice()[0].failed.why);
}

test "a file whose size has changed before the first ACK is not sent" {
    var fixture: ServerFixture = try .init(.{});
    defer fixture.deinit();
    _ = try fixture.request("snponly.efi", .{ .tsize = 0 });
    const other: TftpServer.Catalogue.Fixed =
        .{ .files = &.{.{ .name = "snponly.efi", .size = 5 }} };
    fixture.server.catalogue = other.catalogue();
    const step = try fixture.send(device, .{ .ack = 0 });
    try testing.expectEqual(.not_defined, (try tftp.parse(step.send.packet.bytes)).err.code);
    try testing.expectEqual(.aborted, onlyEvent(step).unanswered.why);
    try testing.expectEqual(1, step.released.constSlice().len);
}

test "a request's file is released with its first packet, and a transfer's at its end" {
    var fixture: ServerFixture = try .init(.{});
    defer fixture.deinit();
    const requested = try fixture.request("undionly.kpxe", .{ .blksize = 1432 });
    try testing.expectEqual(1, requested.released.constSlice().len);
    const began = try fixture.send(device, .{ .ack = 0 });
    try testing.expectEqual(0, began.released.constSlice().len);
    _ = try fixture.send(device, .{ .ack = 1 });
    const finished = try fixture.send(device, .{ .ack = 2 });
    try testing.expectEqual(1, finished.released.constSlice().len);
}

fn spoofed(number: u32) Endpoint {
    return .{ .ip = .fromInt(0x0a010000 + number), .port = @intCast(1000 + number % 50_000) };
}

test "a flood of requests keeps no device out and ends no transfer" {
    var fixture: ServerFixture = try .init(.{ .sessions_max = 4, .requests_max = 64 });
    defer fixture.deinit();
    _ = try fixture.flowing(.{ .windowsize = 2 });
    for (0..2000) |index| {
        fixture.now_us += 50;
        const flood: tftp.Packet =
            .{ .rrq = .{ .file_name = "undionly.kpxe", .options = .{ .blksize = 1432 } } };
        const step = try fixture.send(spoofed(@intCast(index)), flood);
        try testing.expect(step.send == .packet);
        try testing.expect(fixture.server.requests.count <= 64);
        try testing.expectEqual(1, fixture.server.session_count);
    }
    const other: Endpoint = .{ .ip = .init(10, 0, 0, 8), .port = 2070 };
    _ = try fixture.send(other, .{
        .rrq = .{ .file_name = "snponly.efi", .options = .{ .windowsize = 4 } },
    });
    // As many attackers' requests as arrive in a round trip of 2 ms at 20,000 per second.
    for (2000..2040) |index| _ = try fixture.send(spoofed(@intCast(index)), .{
        .rrq = .{ .file_name = "undionly.kpxe", .options = .{ .blksize = 1432 } },
    });
    try expectBlocks(try fixture.send(other, .{ .ack = 0 }), 1, 4);
    try expectBlocks(try fixture.send(device, .{ .ack = 2 }), 3, 2);
}

test "an acknowledgement that was lost twice in a flood still finds its request" {
    var fixture: ServerFixture = try .init(.{});
    defer fixture.deinit();
    _ = try fixture.request("snponly.efi", .{ .windowsize = 4 });
    // 3 s of 20,000 requests each: a client repeats its first acknowledgement after 1 and 2 s.
    for (0..60_000) |index| {
        fixture.now_us += 50;
        _ = try fixture.send(spoofed(@intCast(index)), .{
            .rrq = .{ .file_name = "undionly.kpxe", .options = .{ .blksize = 1432 } },
        });
    }
    try testing.expect(fixture.server.requests.count > 50_000);
    try expectBlocks(try fixture.send(device, .{ .ack = 0 }), 1, 4);
}

test "one address cannot evict the requests of others" {
    var fixture: ServerFixture = try .init(.{ .requests_max = 64, .requests_per_source_max = 8 });
    defer fixture.deinit();
    _ = try fixture.request("snponly.efi", .{ .windowsize = 4 });
    for (0..60) |index| {
        const from: Endpoint = .{ .ip = .init(10, 9, 9, 9), .port = @intCast(1 + index) };
        const step = try fixture.send(from, .{
            .rrq = .{ .file_name = "undionly.kpxe", .options = .{ .blksize = 1432 } },
        });
        const is_evicting = step.events.constSlice()[0] == .unanswered;
        try testing.expectEqual(index >= 8, is_evicting);
        try testing.expect(fixture.server.requests.count <= 9);
    }
    try expectBlocks(try fixture.send(device, .{ .ack = 0 }), 1, 4);
}

test "a spoofed address gets no more than its allowance, and a peer that answers is not limited" {
    var fixture: ServerFixture = try .init(.{});
    defer fixture.deinit();
    const victim: base.Ip4 = .init(10, 5, 5, 5);
    var bytes_in: u64 = 0;
    var bytes_out: u64 = 0;
    for (0..40_000) |index| {
        fixture.now_us += 50;
        const from: Endpoint = .{ .ip = victim, .port = @intCast(1 + index) };
        const step = try fixture.send(from, .{ .rrq = .{ .file_name = "undionly.kpxe" } });
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
        const first = try fixture.send(from, .{ .rrq = .{ .file_name = "undionly.kpxe" } });
        try expectBlocks(first, 1, 1);
        try expectBlocks(try fixture.send(from, .{ .ack = 1 }), 2, 1);
        _ = try fixture.send(from, .{ .err = .{ .code = .not_defined, .text = "" } });
    }
}

test "active transfers are never evicted, a stalled one is" {
    var fixture: ServerFixture = try .init(.{ .sessions_max = 2 });
    defer fixture.deinit();
    const other: Endpoint = .{ .ip = .init(10, 0, 0, 8), .port = 1 };
    const third: Endpoint = .{ .ip = .init(10, 0, 0, 9), .port = 1 };
    for ([_]Endpoint{ device, other }) |from| {
        _ = try fixture.send(from, .{ .rrq = .{ .file_name = "undionly.kpxe" } });
        _ = try fixture.send(from, .{ .ack = 1 });
    }
    _ = try fixture.send(third, .{ .rrq = .{ .file_name = "undionly.kpxe" } });
    const busy = try fixture.send(third, .{ .ack = 1 });
    try testing.expectEqual(.tftp_busy, busy.ignored.?);
    try testing.expectEqual(.nothing, busy.send);
    fixture.now_us += second / 4;
    _ = try fixture.send(other, .{ .ack = 2 });
    fixture.now_us += second / 4;
    while (fixture.server.tick(fixture.now_us)) |step| try expectBlocks(step, 2, 1);
    const step = try fixture.send(third, .{ .ack = 1 });
    const evicted = step.events.constSlice()[0].failed;
    try testing.expectEqual(.evicted, evicted.why);
    try testing.expect(evicted.transfer.peer.eql(device));
    try expectBlocks(step, 2, 1);
}

test "an address has its share of the transfers" {
    var fixture: ServerFixture = try .init(.{ .sessions_per_source_max = 1 });
    defer fixture.deinit();
    _ = try fixture.flowing(.{ .blksize = 1432 });
    const twin: Endpoint = .{ .ip = device.ip, .port = 5 };
    _ = try fixture.send(twin, .{ .rrq = .{ .file_name = "undionly.kpxe" } });
    const limited = try fixture.send(twin, .{ .ack = 1 });
    try testing.expectEqual(.tftp_source_limit, limited.ignored.?);
}

test "a file that cannot be read ends the transfer with an error" {
    var fixture: ServerFixture = try .init(.{});
    defer fixture.deinit();
    _ = try fixture.flowing(.{ .blksize = 1432 });
    const step = fixture.server.abort(device, &fixture.reply_buffer);
    try testing.expectEqual(.aborted, onlyEvent(step).failed.why);
    try testing.expectEqual(.not_defined, (try tftp.parse(step.send.packet.bytes)).err.code);
    try testing.expectEqual(.nothing, fixture.server.abort(device, &fixture.reply_buffer).send);
}

/// One packet of the exchanges in `packages/proto/vectors/tftp-v1.json`.
const Step = struct {
    in: []const u8,
    out: ?[]const u8 = null,
    data: ?struct { first: u64, count: u16, bytes: u64 } = null,
};
const Exchange = struct {
    name: []const u8,
    file: []const u8,
    size: u64,
    steps: []const Step,
};
const Vectors = struct { exchanges: []const Exchange };

test "each recorded exchange of a boot client is reproduced" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const vectors = try std.json.parseFromSliceLeaky(
        Vectors,
        arena.allocator(),
        @embedFile("tftp_vectors_json"),
        .{ .ignore_unknown_fields = true },
    );
    try testing.expect(vectors.exchanges.len > 10);
    for (vectors.exchanges) |*exchange| {
        errdefer std.debug.print("exchange: {s}\n", .{exchange.name});
        try play(exchange);
    }
}

fn play(exchange: *const Exchange) !void {
    const named =
        [_]TftpServer.Catalogue.Fixed.Entry{.{ .name = exchange.file, .size = exchange.size }};
    const published: TftpServer.Catalogue.Fixed = .{ .files = &named };
    var server: TftpServer =
        try .init(testing.allocator, published.catalogue(), .{ .requests_max = 8 });
    defer server.deinit(testing.allocator);
    const peer: base.Endpoint = .{ .ip = .init(10, 0, 0, 7), .port = 2070 };
    var now_us: u64 = 1;
    for (exchange.steps) |*step| {
        errdefer std.debug.print("after {s}\n", .{step.in});
        now_us += 1000;
        var payload: [512]u8 = undefined;
        var reply: TftpServer.ReplyBuffer = undefined;
        const datagram = try std.fmt.hexToBytes(&payload, step.in);
        const answer = server.receive(now_us, peer, datagram, &reply);
        switch (answer.send) {
            .nothing => try testing.expect(step.out == null and step.data == null),
            .packet => |packet| {
                var want: [512]u8 = undefined;
                const bytes =
                    try std.fmt.hexToBytes(&want, step.out orelse return error.UnexpectedPacket);
                try testing.expectEqualSlices(u8, bytes, packet.bytes);
            },
            .blocks => |blocks| {
                const want = step.data orelse return error.UnexpectedBlocks;
                try testing.expectEqual(want.first, blocks.first);
                try testing.expectEqual(want.count, blocks.count);
                const headers = @as(u64, 4) * blocks.count;
                try testing.expectEqual(want.bytes + headers, blocks.byteCount());
            },
        }
    }
}
