//! How `bootfarm-edge vdisk caches snapshot` gets a layer from the edge that has it open: an
//! abstract unix socket whose name is that of the store's directory (device and inode), so that it
//! needs no file and no option. One request, the name of the layer; then the bytes of its file in
//! packets, and how it ended. Both sides serve only root, their own user, and the owner of the
//! store.

const std = @import("std");
const base = @import("base");
const sys = @import("../sys.zig");
const linux = std.os.linux;
const Uuid = base.Uuid;

/// Of the bytes in a packet.
pub const payload_size_max = 64 << 10;
/// Commands that wait while a snapshot is taken for another one.
const waiting_max = 4;
const request_size = 17;
const version = 1;

const Kind = enum(u8) { bytes = 1, end = 2, failed = 3 };

/// Why there is no snapshot. The numbers stay as they are: command and edge may differ in release.
pub const Failure = enum(u8) {
    /// The edge does not have the layer open.
    not_open = 1,
    lost = 2,
    damaged = 3,
    newer_format = 4,
    /// Names the byte.
    rotten = 5,
    /// The layer was closed in the middle.
    ended = 6,
    over_limit = 7,
    no_space = 8,
    disk_failed = 9,
    out_of_memory = 10,
    too_slow = 11,
    /// The request is of a later release.
    unknown_request = 12,
    _,
};

pub const Packet = union(enum) {
    /// `done`: bytes of the disk so far.
    bytes: struct { bytes: []const u8, done: u64 },
    end: struct { blocks: u64 },
    failed: struct { failure: Failure, at: u64 },
};

pub const Buffer = [@sizeOf(Head) + payload_size_max]u8;

const Head = extern struct {
    kind: u8,
    code: u8 = 0,
    number: [8]u8,

    fn of(kind: Kind, code: u8, number: u64) Head {
        var head: Head = .{ .kind = @backingInt(kind), .code = code, .number = undefined };
        std.mem.writeInt(u64, &head.number, number, .little);
        return head;
    }
};

/// `Gone`: the other side has ended, or takes nothing for too long.
pub const SendError = error{Gone};

/// Opens the edge's side. Fails if another edge has the store.
pub fn listen(store_fd: i32) error{SystemCallFailed}!i32 {
    const kind = linux.SOCK.SEQPACKET | linux.SOCK.CLOEXEC;
    const address = try Address.of(store_fd);
    const rc = linux.socket(linux.AF.UNIX, kind, 0);
    const fd: i32 = @intCast(sys.check(rc) catch return error.SystemCallFailed);
    errdefer sys.close(fd);
    _ = sys.check(linux.bind(fd, @ptrCast(&address.un), address.size)) catch
        return error.SystemCallFailed;
    _ = sys.check(linux.listen(fd, waiting_max)) catch return error.SystemCallFailed;
    return fd;
}

/// The layer that a command asks for; null: it asks for something else.
pub const Request = struct { fd: i32, layer: ?Uuid };

/// Waits for a command that may have snapshots. The caller closes the descriptor.
pub fn accept(listener: i32, patience_s: u32) error{SystemCallFailed}!Request {
    while (true) {
        const rc = linux.accept4(listener, null, null, linux.SOCK.CLOEXEC);
        const fd: i32 = @intCast(sys.check(rc) catch |err| switch (err) {
            error.Interrupted, error.WouldBlock => continue,
            error.SystemCallFailed => return error.SystemCallFailed,
        });
        const peer = userOf(fd);
        if (peer == null or (peer.? != 0 and peer.? != linux.geteuid())) {
            sys.close(fd);
            continue;
        }
        limitWaits(fd, patience_s);
        var bytes: [request_size + 1]u8 = undefined;
        const count = sys.check(linux.recvfrom(fd, &bytes, bytes.len, 0, null, null)) catch 0;
        if (count == 0) {
            sys.close(fd);
            continue;
        }
        const is_known = count == request_size and bytes[0] == version;
        return .{ .fd = fd, .layer = if (is_known) .fromBytes(bytes[1..request_size].*) else null };
    }
}

/// Sends bytes of the file, in as many packets as they need.
pub fn sendBytes(fd: i32, bytes: []const u8, done: u64) SendError!void {
    var rest = bytes;
    while (rest.len > 0) {
        const part = rest[0..@min(rest.len, payload_size_max)];
        try send(fd, &.of(.bytes, 0, done), part);
        rest = rest[part.len..];
    }
}

pub fn sendEnd(fd: i32, blocks: u64) SendError!void {
    return send(fd, &.of(.end, 0, blocks), "");
}

pub fn sendFailure(fd: i32, failure: Failure, at: u64) SendError!void {
    return send(fd, &.of(.failed, @backingInt(failure), at), "");
}

fn send(fd: i32, head: *const Head, payload: []const u8) SendError!void {
    const parts = [_]std.posix.iovec_const{
        .{ .base = @ptrCast(head), .len = @sizeOf(Head) },
        .{ .base = payload.ptr, .len = payload.len },
    };
    const message: linux.msghdr_const = .{
        .name = null,
        .namelen = 0,
        .iov = &parts,
        .iovlen = parts.len,
        .control = null,
        .controllen = 0,
        .flags = 0,
    };
    while (true) {
        _ = sys.check(linux.sendmsg(fd, &message, linux.MSG.NOSIGNAL)) catch |err| switch (err) {
            error.Interrupted => continue,
            error.WouldBlock, error.SystemCallFailed => return error.Gone,
        };
        return;
    }
}

/// `NotRunning`: no edge serves this store in this network namespace. `Foreign`: another user has
/// the name.
pub const ConnectError = error{ NotRunning, Foreign, SystemCallFailed };

/// Asks the edge of a store for a layer. `receive` returns at least every `patience_s`.
pub fn connect(store_fd: i32, layer: Uuid, patience_s: u32) ConnectError!i32 {
    const address = try Address.of(store_fd);
    const rc = linux.socket(linux.AF.UNIX, linux.SOCK.SEQPACKET | linux.SOCK.CLOEXEC, 0);
    const fd: i32 = @intCast(sys.check(rc) catch return error.SystemCallFailed);
    errdefer sys.close(fd);
    _ = sys.check(linux.connect(fd, @ptrCast(&address.un), address.size)) catch
        return error.NotRunning;
    const peer = userOf(fd) orelse return error.NotRunning;
    if (peer != 0 and peer != linux.geteuid() and peer != address.owner) return error.Foreign;
    limitWaits(fd, patience_s);
    var request: [request_size]u8 = undefined;
    request[0] = version;
    request[1..].* = layer.bytes;
    _ = sys.check(linux.sendto(fd, &request, request.len, linux.MSG.NOSIGNAL, null, 0)) catch
        return error.NotRunning;
    return fd;
}

/// Returns the next packet, valid as long as the buffer; null: none has come yet. `Gone`: the edge
/// has ended.
pub fn receive(fd: i32, buffer: *Buffer) error{Gone}!?Packet {
    const size = sys.check(linux.recvfrom(fd, buffer, buffer.len, 0, null, null)) catch |err|
        switch (err) {
            error.Interrupted, error.WouldBlock => return null,
            error.SystemCallFailed => return error.Gone,
        };
    if (size < @sizeOf(Head)) return error.Gone;
    const head: *const Head = @ptrCast(buffer);
    const number = std.mem.readInt(u64, &head.number, .little);
    return switch (std.enums.fromInt(Kind, head.kind) orelse return error.Gone) {
        .bytes => .{ .bytes = .{ .bytes = buffer[@sizeOf(Head)..size], .done = number } },
        .end => .{ .end = .{ .blocks = number } },
        .failed => .{ .failed = .{ .failure = @fromBackingInt(head.code), .at = number } },
    };
}

fn limitWaits(fd: i32, patience_s: u32) void {
    const limit: linux.timeval = .{ .sec = patience_s, .usec = 0 };
    for ([_]u32{ linux.SO.SNDTIMEO_NEW, linux.SO.RCVTIMEO_NEW }) |option| _ =
        linux.setsockopt(fd, linux.SOL.SOCKET, option, @ptrCast(&limit), @sizeOf(linux.timeval));
}

/// SO_PEERCRED.
fn userOf(fd: i32) ?u32 {
    const Credentials = extern struct { pid: i32, uid: u32, gid: u32 };
    var credentials: Credentials = undefined;
    var size: linux.socklen_t = @sizeOf(Credentials);
    const rc = linux.getsockopt(
        fd,
        linux.SOL.SOCKET,
        linux.SO.PEERCRED,
        @ptrCast(&credentials),
        &size,
    );
    return if (linux.errno(rc) == .SUCCESS) credentials.uid else null;
}

const Address = struct {
    un: linux.sockaddr.un,
    size: linux.socklen_t,
    /// User of the store's directory.
    owner: u32,

    fn of(store_fd: i32) error{SystemCallFailed}!Address {
        var stat: linux.Statx = undefined;
        const wanted: linux.STATX = .{ .INO = true, .UID = true };
        _ = sys.check(linux.statx(store_fd, "", linux.AT.EMPTY_PATH, wanted, &stat)) catch
            return error.SystemCallFailed;
        var address: Address =
            .{ .un = .{ .path = @splat(0) }, .size = undefined, .owner = stat.uid };
        const name = std.mem.print(
            address.un.path[1..],
            "bootfarm-edge snapshots {d}:{d}:{d}",
            .{ stat.dev_major, stat.dev_minor, stat.ino },
        ) catch unreachable;
        address.size = @intCast(@offsetOf(linux.sockaddr.un, "path") + 1 + name.len);
        return address;
    }
};

const testing = std.testing;

test "a request and its answers arrive as they were sent, and an end of either side is noticed" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    const store_fd = tmp.dir.handle;
    const layer: Uuid = .fromRandom(@splat(5));
    try testing.expectError(error.NotRunning, connect(store_fd, layer, 1));
    const listener = try listen(store_fd);
    try testing.expectError(error.SystemCallFailed, listen(store_fd));
    const client = try connect(store_fd, layer, 1);
    const accepted = try accept(listener, 1);
    try testing.expectEqual(layer, accepted.layer.?);
    var bytes: [payload_size_max + 1]u8 = undefined;
    for (&bytes, 0..) |*byte, at| byte.* = @truncate(at / 251);
    try sendBytes(accepted.fd, &bytes, 7);
    try sendEnd(accepted.fd, 9);
    try sendFailure(accepted.fd, .rotten, 4096);
    var buffer: Buffer = undefined;
    const first = (try receive(client, &buffer)).?.bytes;
    try testing.expectEqualSlices(u8, bytes[0..payload_size_max], first.bytes);
    try testing.expectEqual(7, first.done);
    try testing.expectEqual(1, (try receive(client, &buffer)).?.bytes.bytes.len);
    try testing.expectEqual(9, (try receive(client, &buffer)).?.end.blocks);
    const failed = (try receive(client, &buffer)).?.failed;
    try testing.expectEqual(.rotten, failed.failure);
    try testing.expectEqual(4096, failed.at);
    sys.close(accepted.fd);
    try testing.expectError(error.Gone, receive(client, &buffer));
    sys.close(client);
    const other = try connect(store_fd, layer, 1);
    const again = try accept(listener, 1);
    sys.close(other);
    try testing.expectError(error.Gone, sendEnd(again.fd, 1));
    sys.close(again.fd);
    sys.close(listener);
    try testing.expectError(error.NotRunning, connect(store_fd, layer, 1));
}
