//! The client of one TFTP download (RFC 1350, 2347, 2348, 2349, 7440), behaving like firmware;
//! simulated devices use it. It has no clock and no socket: the caller sends what a step contains
//! and keeps the bytes that it delivers.
//!
//!     var step = client.start(now_us, &buffer);
//!     // then client.receive(...) for each datagram, and client.tick(...) when client.deadline_us
//!     // has passed, until a step has an outcome; receive stays in use for a while then, since the
//!     // server may not have received the last ACK.

const std = @import("std");
const assert = std.debug.assert;
const base = @import("base");
const tftp = @import("wire").tftp;
const Endpoint = base.Endpoint;

pub const TftpClient = @This();

options: Options,
state: State = .idle,
/// The server's own port for this transfer, known from its first packet (RFC 1350 section 4).
peer: ?Endpoint = null,
blksize: u16 = tftp.blksize_default,
windowsize: u16 = 1,
/// From the OACK, if `tsize` was requested.
file_size: ?u64 = null,
/// The next block in order, 1-based, not truncated to 16 bits.
expected: u64 = 1,
bytes_received: u64 = 0,
/// Blocks in order since the last ACK.
window_count: u16 = 0,
/// The current hole was reported; one ACK for each.
is_hole_reported: bool = false,
retry_count: u32 = 0,
/// Packets retransmitted in the whole transfer.
retries: u64 = 0,
/// When `tick` is due.
deadline_us: u64 = std.math.maxInt(u64),

pub const Buffer = [tftp.request_size_max]u8;

/// Upper bound of the doubled timeout: a restarted server knows nothing of the transfer and stays
/// silent, so only giving up and starting over helps.
pub const retry_timeout_max_us = 4 * std.time.us_per_s;

pub const Options = struct {
    /// Where the request goes.
    server: Endpoint,
    file_name: []const u8,
    blksize: ?u16 = 1432,
    windowsize: ?u16 = null,
    asks_size: bool = true,
    retry_timeout_us: u64 = std.time.us_per_s,
    retries_max: u32 = 6,
};

const State = enum { idle, requested, receiving, done, failed };

pub const Failure = union(enum) {
    timeout,
    /// An OACK that does not fit the requested options.
    bad_options,
    server_error: struct { code: tftp.ErrorCode, text: base.UntrustedText },
};

pub const Outcome = union(enum) { done: u64, failed: Failure };

pub const Packet = struct { to: Endpoint, bytes: []const u8 };

/// Bytes of the file, in order and each once; they point into the datagram.
pub const Content = struct { offset: u64, bytes: []const u8 };

pub const Step = struct {
    ignored: bool = false,
    send: ?Packet = null,
    content: ?Content = null,
    /// Set once.
    outcome: ?Outcome = null,
};

pub fn init(options: Options) TftpClient {
    assert(options.file_name.len > 0);
    assert(options.retry_timeout_us > 0);
    return .{ .options = options };
}

/// Returns the read request.
pub fn start(client: *TftpClient, now_us: u64, buffer: *Buffer) Step {
    assert(client.state == .idle);
    client.state = .requested;
    return .{ .send = client.request(now_us, buffer) };
}

pub fn receive(
    client: *TftpClient,
    now_us: u64,
    from: Endpoint,
    datagram: []const u8,
    buffer: *Buffer,
) Step {
    const ignored: Step = .{ .ignored = true };
    if (client.state == .idle or client.state == .failed) return ignored;
    if (!from.ip.eql(client.options.server.ip)) return ignored;
    if (client.peer) |peer| if (!from.eql(peer)) return ignored;
    const packet = tftp.parse(datagram) catch return ignored;
    switch (packet) {
        .oack => |options| return client.receiveOack(now_us, from, &options, buffer),
        .data => |data| return client.receiveData(now_us, from, data, buffer),
        .err => |failure| {
            if (client.state == .done) return ignored;
            const text: base.UntrustedText = .init(failure.text);
            return client.fail(.{ .server_error = .{ .code = failure.code, .text = text } });
        },
        .rrq, .wrq, .ack => return ignored,
    }
}

/// Must be called when `deadline_us` has passed: retransmits.
pub fn tick(client: *TftpClient, now_us: u64, buffer: *Buffer) Step {
    if (now_us < client.deadline_us) return .{};
    switch (client.state) {
        .idle, .done, .failed => return .{},
        .requested, .receiving => {},
    }
    if (client.retry_count == client.options.retries_max) return client.fail(.timeout);
    assert(client.retry_count < client.options.retries_max);
    client.retry_count += 1;
    client.retries += 1;
    if (client.state == .requested) return .{ .send = client.request(now_us, buffer) };
    return .{ .send = client.acknowledge(now_us, buffer) };
}

fn receiveOack(
    client: *TftpClient,
    now_us: u64,
    from: Endpoint,
    options: *const tftp.Options,
    buffer: *Buffer,
) Step {
    switch (client.state) {
        .requested => {},
        // The server did not receive ACK 0.
        .receiving => if (client.expected == 1)
            return .{ .send = client.acknowledge(now_us, buffer) }
        else
            return .{ .ignored = true },
        .idle, .done, .failed => return .{ .ignored = true },
    }
    const requested = &client.options;
    client.blksize = agreed(options.blksize, requested.blksize, tftp.blksize_default) catch
        return client.refuse(from, buffer);
    client.windowsize = agreed(options.windowsize, requested.windowsize, 1) catch
        return client.refuse(from, buffer);
    client.file_size = options.tsize;
    client.peer = from;
    client.state = .receiving;
    client.retry_count = 0;
    return .{ .send = client.acknowledge(now_us, buffer) };
}

/// A server may lower a value, but neither raise one nor add its own (RFC 2347).
fn agreed(offered: ?u16, requested: ?u16, default: u16) error{BadOptions}!u16 {
    const value = offered orelse return default;
    if (value > requested orelse return error.BadOptions) return error.BadOptions;
    return value;
}

fn receiveData(
    client: *TftpClient,
    now_us: u64,
    from: Endpoint,
    data: tftp.Data,
    buffer: *Buffer,
) Step {
    switch (client.state) {
        .idle, .failed => unreachable,
        // The server did not receive the last ACK.
        .done => return .{ .send = client.acknowledge(now_us, buffer) },
        // A server without options (RFC 2347) sends block 1 at once, with the defaults.
        .requested => {
            client.peer = from;
            client.state = .receiving;
        },
        .receiving => {},
    }
    if (data.block != @as(u16, @truncate(client.expected)))
        return client.onOutOfOrder(now_us, buffer);
    if (data.bytes.len > client.blksize) return .{ .ignored = true };
    assert(client.window_count < client.windowsize);
    const is_last = data.bytes.len < client.blksize;
    var step: Step = .{ .content = .{ .offset = client.bytes_received, .bytes = data.bytes } };
    client.expected += 1;
    client.bytes_received += data.bytes.len;
    client.window_count += 1;
    client.is_hole_reported = false;
    client.retry_count = 0;
    client.deadline_us = now_us + client.options.retry_timeout_us;
    if (is_last) {
        client.state = .done;
        client.deadline_us = std.math.maxInt(u64);
        step.outcome = .{ .done = client.bytes_received };
    }
    if (is_last or client.window_count == client.windowsize)
        step.send = client.acknowledge(now_us, buffer);
    return step;
}

/// A block out of order: the last one in order is acknowledged once, so that the server continues
/// behind it (RFC 7440 section 4); in lock-step it is a retransmitted block whose ACK was lost.
fn onOutOfOrder(client: *TftpClient, now_us: u64, buffer: *Buffer) Step {
    assert(client.state == .receiving);
    if (client.windowsize > 1 and client.is_hole_reported) return .{ .ignored = true };
    client.is_hole_reported = true;
    client.retries += 1;
    return .{ .send = client.acknowledge(now_us, buffer) };
}

fn request(client: *TftpClient, now_us: u64, buffer: *Buffer) Packet {
    assert(client.state == .requested);
    const options = &client.options;
    const packet: tftp.Packet = .{ .rrq = .{
        .file_name = options.file_name,
        .options = .{
            .blksize = options.blksize,
            .tsize = if (options.asks_size) 0 else null,
            .windowsize = options.windowsize,
        },
    } };
    client.setDeadline(now_us);
    return .{
        .to = options.server,
        // The file name is the caller's own: one longer than a request is our mistake.
        .bytes = tftp.emit(&packet, buffer) catch unreachable,
    };
}

fn acknowledge(client: *TftpClient, now_us: u64, buffer: *Buffer) Packet {
    assert(client.peer != null);
    assert(client.expected > 0);
    client.window_count = 0;
    if (client.state == .receiving) client.setDeadline(now_us);
    const packet: tftp.Packet = .{ .ack = @truncate(client.expected - 1) };
    return .{ .to = client.peer.?, .bytes = tftp.emit(&packet, buffer) catch unreachable };
}

/// Doubles with each consecutive retransmission, up to `retry_timeout_max_us`.
fn setDeadline(client: *TftpClient, now_us: u64) void {
    const doublings: u6 = @intCast(@min(client.retry_count, 6));
    const doubled_us = client.options.retry_timeout_us << doublings;
    client.deadline_us =
        now_us + @max(client.options.retry_timeout_us, @min(doubled_us, retry_timeout_max_us));
    assert(client.deadline_us > now_us);
}

fn refuse(client: *TftpClient, to: Endpoint, buffer: *Buffer) Step {
    const packet: tftp.Packet =
        .{ .err = .{ .code = .option_refused, .text = "options not as requested" } };
    var step = client.fail(.bad_options);
    step.send = .{ .to = to, .bytes = tftp.emit(&packet, buffer) catch unreachable };
    return step;
}

fn fail(client: *TftpClient, why: Failure) Step {
    assert(client.state != .failed);
    client.state = .failed;
    client.deadline_us = std.math.maxInt(u64);
    return .{ .outcome = .{ .failed = why } };
}

test "a transfer that the server has forgotten is given up within half a minute" {
    var client: TftpClient =
        .init(.{ .server = .{ .ip = .init(10, 0, 0, 1), .port = 69 }, .file_name = "nbp" });
    var buffer: Buffer = undefined;
    _ = client.start(0, &buffer);
    var packet: [tftp.request_size_max]u8 = undefined;
    const oack = tftp.emit(&.{ .oack = .{ .blksize = 1432, .tsize = 5000 } }, &packet) catch
        unreachable;
    _ = client.receive(1000, client.options.server, oack, &buffer);
    var now_us: u64 = 1000;
    const outcome = while (now_us < 30 * std.time.us_per_s) {
        now_us = client.deadline_us;
        if (client.tick(now_us, &buffer).outcome) |outcome| break outcome;
    } else unreachable;
    try std.testing.expectEqual(.timeout, std.meta.activeTag(outcome.failed));
}
