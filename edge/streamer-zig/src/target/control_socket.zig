//! The control socket: how a second `bootfarm-target` talks to the one that serves the disk. An
//! abstract unix socket needs no file system, so it works from the initramfs and from the started
//! system. One request, one answer, each a packet of text.
//!
//! Requests: `ready CODE SENTENCE` and `failed CODE SENTENCE` (answered when the edge has
//! acknowledged), `steps LINES` (those of `timings/step_list.zig`), `cache FOLDER` (on the file
//! system to watch), `account KIND PART LAST BYTES` (answered when the edge has it), `status`. Only
//! root is served.

const std = @import("std");
const linux = std.os.linux;
const sys = @import("host").sys;
const assert = std.debug.assert;

pub const message_size_max = 4096;
/// The answer to a request that was carried out.
pub const done = "ok";
pub const clients_max = 4;
const name = "\x00bootfarm-target";
/// Credentials of the peer (SO_PEERCRED).
const Credentials = extern struct { pid: i32, uid: u32, gid: u32 };

pub const Server = struct {
    fd: i32,
    /// -1 if there is none.
    clients: [clients_max]i32 = @splat(-1),
    /// What of each client waits for the edge's acknowledgement.
    waiting: [clients_max]Waiting = @splat(.nothing),

    pub const Waiting = enum { nothing, outcome, account };

    /// Null if another target has the name, or the system refuses.
    pub fn init() ?Server {
        const kind = linux.SOCK.SEQPACKET | linux.SOCK.NONBLOCK | linux.SOCK.CLOEXEC;
        const fd: i32 = @intCast(sys.check(linux.socket(linux.AF.UNIX, kind, 0)) catch return null);
        const address = addressOf();
        const is_listening = linux.errno(
            linux.bind(fd, @ptrCast(&address.un), address.size),
        ) == .SUCCESS and
            linux.errno(linux.listen(fd, clients_max)) == .SUCCESS;
        if (is_listening) return .{ .fd = fd };
        sys.close(fd);
        return null;
    }

    /// Its name is free for the next process.
    pub fn close(server: *Server) void {
        sys.close(server.fd);
        for (server.clients) |client| if (client >= 0) sys.close(client);
        server.* = undefined;
    }

    pub fn hasRoom(server: *const Server) bool {
        return std.mem.findScalar(i32, &server.clients, -1) != null;
    }

    /// Accepts a waiting client; rejects one that is not root.
    pub fn accept(server: *Server) void {
        const index = std.mem.findScalar(i32, &server.clients, -1) orelse return;
        const flags = linux.SOCK.NONBLOCK | linux.SOCK.CLOEXEC;
        const client: i32 =
            @intCast(sys.check(linux.accept4(server.fd, null, null, flags)) catch return);
        var credentials: Credentials = undefined;
        var size: linux.socklen_t = @sizeOf(Credentials);
        const rc = linux.getsockopt(
            client,
            linux.SOL.SOCKET,
            linux.SO.PEERCRED,
            @ptrCast(&credentials),
            &size,
        );
        if (linux.errno(rc) != .SUCCESS or credentials.uid != 0) return sys.close(client);
        server.clients[index] = client;
        server.waiting[index] = .nothing;
    }

    /// Returns the request of a readable client; null if it has gone, or sends more while it waits
    /// for its answer.
    pub fn receive(server: *Server, index: usize, buffer: *[message_size_max]u8) ?[]const u8 {
        const rc = linux.recvfrom(
            server.clients[index],
            buffer,
            buffer.len,
            linux.MSG.DONTWAIT,
            null,
            null,
        );
        const size = sys.check(rc) catch 0;
        if (size > 0 and server.waiting[index] == .nothing) return buffer[0..size];
        server.drop(index);
        return null;
    }

    pub fn answer(server: *Server, index: usize, text: []const u8) void {
        _ = linux.sendto(
            server.clients[index],
            text.ptr,
            text.len,
            linux.MSG.DONTWAIT | linux.MSG.NOSIGNAL,
            null,
            0,
        );
        server.drop(index);
    }

    /// Answers all clients that wait for this acknowledgement.
    pub fn acknowledge(server: *Server, what: Waiting, text: []const u8) void {
        assert(what != .nothing);
        for (0..clients_max) |index| if (server.waiting[index] == what) server.answer(index, text);
    }

    fn drop(server: *Server, index: usize) void {
        sys.close(server.clients[index]);
        server.clients[index] = -1;
        server.waiting[index] = .nothing;
    }
};

pub const AskError = error{
    /// No target serves a disk here.
    NotRunning,
    /// Timeout.
    NoAnswer,
    /// Not root.
    Refused,
};

/// Sends a request to the running target and waits for its answer.
pub fn ask(request: []const u8, timeout_s: u32, buffer: *[message_size_max]u8) AskError![]const u8 {
    const kind = linux.SOCK.SEQPACKET | linux.SOCK.CLOEXEC;
    const fd: i32 =
        @intCast(sys.check(linux.socket(linux.AF.UNIX, kind, 0)) catch return error.NotRunning);
    defer sys.close(fd);
    const timeout: linux.timeval = .{ .sec = timeout_s, .usec = 0 };
    _ = linux.setsockopt(
        fd,
        linux.SOL.SOCKET,
        linux.SO.RCVTIMEO_NEW,
        @ptrCast(&timeout),
        @sizeOf(linux.timeval),
    );
    const address = addressOf();
    _ = sys.check(linux.connect(fd, @ptrCast(&address.un), address.size)) catch
        return error.NotRunning;
    _ = sys.check(linux.sendto(fd, request.ptr, request.len, linux.MSG.NOSIGNAL, null, 0)) catch
        return error.Refused;
    const size = sys.check(linux.recvfrom(fd, buffer, buffer.len, 0, null, null)) catch
        return error.NoAnswer;
    if (size > 0) return buffer[0..size];
    // A client that is not root is rejected. Otherwise the process ended, and has kept the request.
    return if (linux.geteuid() == 0) error.NoAnswer else error.Refused;
}

const Address = struct { un: linux.sockaddr.un, size: linux.socklen_t };

fn addressOf() Address {
    var address: Address =
        .{ .un = .{ .path = @splat(0) }, .size = @offsetOf(linux.sockaddr.un, "path") + name.len };
    @memcpy(address.un.path[0..name.len], name);
    return address;
}
