//! Gives the kernel's nbd driver one end of a socket pair, from which it serves /dev/nbd0. Uses
//! generic netlink, so that no thread has to wait inside an ioctl for the lifetime of the device.

const std = @import("std");
const linux = std.os.linux;
const netlink = @import("wire").nbd_netlink;
const nbd = @import("wire").nbd;
const sys = @import("host").sys;

pub const path = "/dev/nbd0";
const index = 0;
/// The smallest block size that suits every file system and partition table.
const block_size_bytes = 512;
/// Number of messages searched for the driver's answer.
const answers_max = 16;

pub const Error = error{
    /// The kernel has no nbd driver, or it is not loaded.
    NoDriver,
    /// /dev/nbd0 already has a socket.
    InUse,
    /// CAP_SYS_ADMIN is missing.
    NotPermitted,
    /// Any other error; `last_errno` has the kernel's number.
    Failed,
};

/// The kernel's number of the last failure, for the message.
pub var last_errno: u16 = 0;

/// Starts a device of `disk_size` bytes, read-only unless it `takes_writes`, and returns our end of
/// the pair.
pub fn start(disk_size: u64, takes_writes: bool) Error!i32 {
    const control = try fdOf(
        linux.socket(linux.AF.NETLINK, linux.SOCK.RAW | linux.SOCK.CLOEXEC, linux.NETLINK.GENERIC),
    );
    defer sys.close(control);
    var buffer: [netlink.message_size_max]u8 = undefined;
    const family_id = switch (try ask(control, netlink.emitFamilyRequest(&buffer))) {
        .family_id => |id| id,
        .failed => |errno| return if (errno ==
            @backingInt(linux.E.NOENT)) error.NoDriver else failed(errno),
        .done, .other => return failed(0),
    };
    var pair: [2]i32 = undefined;
    _ = try check(
        linux.socketpair(linux.AF.UNIX, linux.SOCK.STREAM | linux.SOCK.CLOEXEC, 0, &pair),
    );
    // The driver holds its own end.
    defer sys.close(pair[1]);
    errdefer sys.close(pair[0]);
    const answer = try ask(control, netlink.emitConnect(&buffer, family_id, .{
        .index = index,
        .size_bytes = disk_size,
        .block_size_bytes = block_size_bytes,
        .server_flags = nbd.flag_has_flags | if (takes_writes) nbd.flag_send_flush |
            nbd.flag_send_trim | nbd.flag_send_write_zeroes else nbd.flag_read_only,
        .socket = pair[1],
    }));
    switch (answer) {
        .done => {},
        .failed => |errno| return switch (@as(linux.E, @fromBackingInt(errno))) {
            .BUSY => error.InUse,
            .PERM => error.NotPermitted,
            else => failed(errno),
        },
        .family_id, .other => return failed(0),
    }
    // Space for several replies, so that one system call usually takes a whole one.
    const size: i32 = 1 << 20;
    _ = linux.setsockopt(
        pair[0],
        linux.SOL.SOCKET,
        linux.SO.SNDBUFFORCE,
        std.mem.asBytes(&size),
        @sizeOf(i32),
    );
    return pair[0];
}

/// Opens the device and reads its first block: the partitions appear, and the whole path is tested.
pub fn readFirstBlock() Error!void {
    const fd = try fdOf(linux.open(path, .{ .CLOEXEC = true }, 0));
    defer sys.close(fd);
    var block: [4096]u8 = undefined;
    _ = try check(linux.pread(fd, &block, block.len, 0));
}

/// Sends a message and returns its answer.
fn ask(control: i32, message: []const u8) Error!netlink.Answer {
    _ = try check(linux.sendto(control, message.ptr, message.len, 0, null, 0));
    for (0..answers_max) |_| {
        var buffer: [4096]u8 align(4) = undefined;
        const size = try check(linux.recvfrom(control, &buffer, buffer.len, 0, null, null));
        switch (netlink.parseAnswer(buffer[0..size])) {
            .other => continue,
            else => |known| return known,
        }
    }
    return failed(0);
}

fn fdOf(rc: usize) Error!i32 {
    return @intCast(try check(rc));
}

fn check(rc: usize) Error!usize {
    const errno = linux.errno(rc);
    return if (errno == .SUCCESS) rc else failed(@backingInt(errno));
}

fn failed(errno: u16) Error {
    last_errno = errno;
    return error.Failed;
}
