//! TLS to the control plane, spoken by a process of this same program for each connection. The
//! standard library's client trusts lengths, tags and numbers that the server sends, also in
//! certificates that nothing has verified yet: a damaged handshake ends the process that reads it.
//! That must not be the one that serves devices.
//!
//! The process has the server's socket as descriptor 0 and one end of a pair of sockets as
//! descriptor 1. It writes one byte there, which says how the handshake ended, and then passes
//! clear text in both directions. It ends when the other end of the pair is closed, however that
//! happens.

const std = @import("std");
const authorities = @import("authorities.zig");
const sys = @import("../sys.zig");
const Failure = @import("transport_failure.zig").Failure;
const assert = std.debug.assert;
const linux = std.os.linux;
const tls = std.crypto.tls;
const Io = std.Io;

pub const TlsProcess = @This();

pid: i32,
/// This side's end of the pair.
socket: i32,

/// Not for people: no help lists it.
pub const command = "tls-connection";

const program = "/proc/self/exe";
const stack_size = 16 << 10;
const not_run = 127;
const shaken: u8 = 0xff;

comptime {
    assert(std.enums.values(Failure).len < shaken);
}

/// The caller keeps `server` and may close it. Names that do not fit are not started.
pub fn start(server: i32, host: []const u8, ca_file: ?[]const u8) error{NotStarted}!TlsProcess {
    var words: Words = .{ .server = server };
    words.init(host, ca_file) catch return error.NotStarted;
    var pair: [2]i32 = undefined;
    const pair_type = linux.SOCK.STREAM | linux.SOCK.CLOEXEC;
    _ = sys.check(linux.socketpair(linux.AF.UNIX, pair_type, 0, &pair)) catch
        return error.NotStarted;
    defer sys.close(pair[1]);
    errdefer sys.close(pair[0]);
    words.pair = pair[1];
    // The process shares this one's memory until it is another program: no handler may run there.
    var before: linux.sigset_t = undefined;
    const all = linux.sigfillset();
    _ = linux.sigprocmask(linux.SIG.BLOCK, &all, &before);
    defer _ = linux.sigprocmask(linux.SIG.SETMASK, &before, null);
    var stack: [stack_size]u8 align(16) = undefined;
    // A fork would copy the page tables of a large edge while its packet loop waits.
    const flags = linux.CLONE.VM | linux.CLONE.VFORK | @backingInt(linux.SIG.CHLD);
    const top = @intFromPtr(&stack) + stack_size;
    const cloned = linux.clone(becomeProgram, top, flags, @intFromPtr(&words), null, 0, null);
    const pid = sys.check(cloned) catch return error.NotStarted;
    return .{ .pid = @intCast(pid), .socket = pair[0] };
}

/// Ends the process; the caller closes `socket`.
pub fn stop(process: *TlsProcess) void {
    _ = linux.kill(process.pid, .KILL);
    var status: i32 = 0;
    while (linux.errno(linux.waitpid(process.pid, &status, 0)) == .INTR) {}
    process.* = undefined;
}

/// Waits for the end of the handshake; null: it has succeeded.
pub fn handshakeFailure(reader: *Io.Reader) ?Failure {
    const byte = reader.takeByte() catch return .tls_malformed;
    if (byte == shaken) return null;
    return std.enums.fromInt(Failure, byte) orelse .tls_malformed;
}

const Words = struct {
    server: i32,
    pair: i32 = -1,
    buffer: [host_size_max + linux.PATH_MAX + 2]u8 = undefined,
    arguments: [4:null]?[*:0]const u8 = @splat(null),

    const host_size_max = 255;

    fn init(words: *Words, host: []const u8, ca_file: ?[]const u8) error{NoSpaceLeft}!void {
        words.arguments[0] = "bootfarm-edge";
        words.arguments[1] = command;
        const named = try std.mem.printSentinel(&words.buffer, "{s}", .{host}, 0);
        words.arguments[2] = named;
        if (ca_file) |path| words.arguments[3] =
            try std.mem.printSentinel(words.buffer[named.len + 1 ..], "{s}", .{path}, 0);
    }
};

/// Runs in the new process, on its own stack. Only system calls: its memory is its parent's.
fn becomeProgram(argument: usize) callconv(.c) u8 {
    const words: *const Words = @ptrFromInt(argument);
    // Above those that they replace.
    const server = linux.fcntl(words.server, linux.F.DUPFD, 3);
    const pair = linux.fcntl(words.pair, linux.F.DUPFD, 3);
    const nothing = linux.open("/dev/null", .{ .ACCMODE = .RDWR }, 0);
    for ([_]usize{ server, pair, nothing }, 0..) |from, to| {
        if (linux.errno(from) != .SUCCESS) return not_run;
        _ = linux.dup2(@intCast(from), @intCast(to));
    }
    _ = linux.close_range(3, std.math.maxInt(i32), .{ .UNSHARE = false, .CLOEXEC = false });
    const environment: [0:null]?[*:0]const u8 = .{};
    _ = linux.execve(program, &words.arguments, &environment);
    return not_run;
}

/// The process itself: returns its exit code. `gpa` must be thread-safe.
pub fn run(gpa: std.mem.Allocator, io: Io, host: []const u8, ca_file: ?[]const u8) u8 {
    // A server that ends this process must not fill the disk with its memory.
    _ = linux.prctl(dumpable_option, 0, 0, 0, 0);
    const watch = std.Thread.spawn(.{ .stack_size = 64 << 10 }, endWithEdge, .{}) catch return 1;
    watch.detach();
    const connection = gpa.create(Connection) catch return 1;
    if (connection.init(gpa, io, host, ca_file)) |failure| {
        sys.writeAll(edge_fd, &.{@intCast(@backingInt(failure))}) catch {};
        return 1;
    }
    sys.writeAll(edge_fd, &.{shaken}) catch return 1;
    connection.relay() catch return 1;
    return 0;
}

const dumpable_option = 4;
const server_fd = 0;
const edge_fd = 1;

fn endWithEdge() void {
    // POLLHUP is always reported.
    var polled = [_]linux.pollfd{.{ .fd = edge_fd, .events = 0, .revents = 0 }};
    while (linux.errno(linux.poll(&polled, 1, -1)) == .INTR) {}
    linux.exit_group(0);
}

/// Keeps its place: reader and writer of TLS point into it.
const Connection = struct {
    socket_reader: Io.net.Stream.Reader,
    socket_writer: Io.net.Stream.Writer,
    tls: tls.Client,
    trust: std.crypto.Certificate.Bundle,
    trust_lock: Io.RwLock,
    socket_read_buffer: [tls.Client.min_buffer_len]u8,
    socket_write_buffer: [tls.Client.min_buffer_len]u8,
    tls_read_buffer: [tls.Client.min_buffer_len]u8,
    tls_write_buffer: [4096]u8,

    fn init(
        connection: *Connection,
        gpa: std.mem.Allocator,
        io: Io,
        host: []const u8,
        ca_file: ?[]const u8,
    ) ?Failure {
        const now = Io.Clock.real.now(io);
        connection.trust = .empty;
        connection.trust_lock = .init;
        authorities.read(gpa, io, ca_file, now, &connection.trust) catch
            return .authorities_unreadable;
        const stream: Io.net.Stream = .{ .socket = .{
            .handle = server_fd,
            .address = .{ .ip4 = .unspecified(0) },
        } };
        connection.socket_reader = stream.reader(io, &connection.socket_read_buffer);
        connection.socket_writer = stream.writer(io, &connection.socket_write_buffer);
        var entropy: [tls.Client.Options.entropy_len]u8 = undefined;
        sys.random(&entropy);
        connection.tls = tls.Client.init(
            &connection.socket_reader.interface,
            &connection.socket_writer.interface,
            .{
                .host = .{ .explicit = host },
                .ca = .{ .bundle = .{
                    .gpa = gpa,
                    .io = io,
                    .lock = &connection.trust_lock,
                    .bundle = &connection.trust,
                } },
                .read_buffer = &connection.tls_read_buffer,
                .write_buffer = &connection.tls_write_buffer,
                .entropy = &entropy,
                .realtime_now = now,
                // An answer has a length, or it ends with the connection and is parsed as a whole.
                .allow_truncation_attacks = true,
            },
        ) catch |err| return .ofHandshake(err);
        return null;
    }

    /// Passes text until one side ends. A request and its answer never cross, so that waiting for
    /// the rest of a record holds up nothing.
    fn relay(connection: *Connection) !void {
        const server = &connection.socket_reader.interface;
        while (true) {
            var polled = [_]linux.pollfd{
                .{ .fd = server_fd, .events = linux.POLL.IN, .revents = 0 },
                .{ .fd = edge_fd, .events = linux.POLL.IN, .revents = 0 },
            };
            const has_input = server.bufferedLen() > 0;
            _ = sys.check(linux.poll(&polled, polled.len, if (has_input) 0 else -1)) catch |err|
                if (err == error.Interrupted) continue else return err;
            if (polled[1].revents != 0) try connection.passToServer();
            if (has_input or polled[0].revents != 0) {
                const clear = &connection.tls.reader;
                clear.fillMore() catch |err| return if (err == error.EndOfStream) {} else err;
                try sys.writeAll(edge_fd, clear.buffered());
                clear.tossBuffered();
            }
        }
    }

    fn passToServer(connection: *Connection) !void {
        var buffer: [4096]u8 = undefined;
        const size = sys.check(linux.read(edge_fd, &buffer, buffer.len)) catch |err|
            return if (err == error.Interrupted) {} else err;
        if (size == 0) return error.EndOfStream;
        try connection.tls.writer.writeAll(buffer[0..size]);
        try connection.tls.writer.flush();
        try connection.socket_writer.interface.flush();
    }
};

const testing = std.testing;

test "a handshake that ends without a known byte is malformed" {
    for (std.enums.values(Failure)) |failure| {
        var reader: Io.Reader = .fixed(&.{@intCast(@backingInt(failure))});
        try testing.expectEqual(failure, handshakeFailure(&reader));
    }
    var succeeded: Io.Reader = .fixed(&.{shaken});
    try testing.expectEqual(null, handshakeFailure(&succeeded));
    for ([_][]const u8{ "", &.{shaken - 1} }) |bytes| {
        var reader: Io.Reader = .fixed(bytes);
        try testing.expectEqual(.tls_malformed, handshakeFailure(&reader));
    }
}

test "names that do not fit start no process" {
    const long: [2 * linux.PATH_MAX]u8 = @splat('a');
    try testing.expectError(error.NotStarted, start(0, "a", &long));
}
