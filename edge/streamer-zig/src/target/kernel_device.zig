//! Gives the kernel's nbd driver one end of a socket pair, from which it serves a block device.
//! Uses generic netlink, so that no thread has to wait inside an ioctl for the lifetime of the
//! device, and another process can take over from one that was killed.

const std = @import("std");
const linux = std.os.linux;
const netlink = @import("wire").nbd_netlink;
const nbd = @import("wire").nbd;
const sys = @import("host").sys;

/// The smallest block size that suits every file system and partition table.
const block_size_bytes = 512;
/// Number of messages searched for the driver's answer.
const answers_max = 16;
/// Requests that nobody serves fail after this. Another process takes over within milliseconds
/// (`attach.zig`); if both were killed at once, nobody does, and the system gets I/O errors.
const dead_connection_timeout_s = 5 * 60;

pub const Error = error{
    /// The kernel has no nbd driver, or it is not loaded.
    NoDriver,
    /// The device already has a socket.
    InUse,
    /// CAP_SYS_ADMIN is missing.
    NotPermitted,
    /// Any other error; `last_errno` has the kernel's number.
    Failed,
};

/// The kernel's number of the last failure, for the message.
pub var last_errno: u16 = 0;
/// n of /dev/nbdn. Before `start`: the device that the command line names; afterwards, the one that
/// this process serves. Null: a free one.
pub var index: ?u32 = null;
var path_buffer: [24]u8 = undefined;

/// Returns the device's name; before the driver has named it, the name of the driver's first one.
pub fn path() [:0]const u8 {
    return std.mem.printSentinel(&path_buffer, "/dev/nbd{d}", .{index orelse 0}, 0) catch
        unreachable; // The highest number has room.
}

/// Starts a device of `disk_size` bytes, read-only unless it `takes_writes`, and returns our end of
/// the pair.
pub fn start(disk_size: u64, takes_writes: bool) Error!i32 {
    const driver: Driver = try .open();
    defer driver.close();
    const pair = try socketPair();
    // The driver holds its own end.
    defer sys.close(pair[1]);
    errdefer sys.close(pair[0]);
    var buffer: [netlink.message_size_max]u8 = undefined;
    index = try driver.configure(netlink.emitConnect(&buffer, driver.family_id, .{
        .index = index,
        .size_bytes = disk_size,
        .block_size_bytes = block_size_bytes,
        .server_flags = nbd.flag_has_flags | if (takes_writes) nbd.flag_send_flush |
            nbd.flag_send_trim | nbd.flag_send_write_zeroes else nbd.flag_read_only,
        .dead_connection_timeout_s = dead_connection_timeout_s,
        .socket = pair[1],
    })) orelse index orelse return failed(0);
    return pair[0];
}

/// Gives the device another socket after the process of the former one has ended, and returns our
/// end of it. The kernel sends the requests again that were not answered.
pub fn restart() Error!i32 {
    const driver: Driver = try .open();
    defer driver.close();
    const pair = try socketPair();
    defer sys.close(pair[1]);
    errdefer sys.close(pair[0]);
    var buffer: [netlink.message_size_max]u8 = undefined;
    _ = try driver.configure(netlink.emitReconfigure(
        &buffer,
        driver.family_id,
        .{ .index = index.?, .socket = pair[1] },
    ));
    return pair[0];
}

fn socketPair() Error![2]i32 {
    var pair: [2]i32 = undefined;
    _ = try check(
        linux.socketpair(linux.AF.UNIX, linux.SOCK.STREAM | linux.SOCK.CLOEXEC, 0, &pair),
    );
    // Space for several replies, so that one system call usually takes a whole one.
    const size: i32 = 1 << 20;
    _ = linux.setsockopt(
        pair[0],
        linux.SOL.SOCKET,
        linux.SO.SNDBUFFORCE,
        std.mem.asBytes(&size),
        @sizeOf(i32),
    );
    return pair;
}

/// Opens the device and reads its first block: the partitions appear, and the whole path is tested.
pub fn readFirstBlock() Error!void {
    const fd = try fdOf(linux.open(path(), .{ .CLOEXEC = true }, 0));
    defer sys.close(fd);
    var block: [4096]u8 = undefined;
    _ = try check(linux.pread(fd, &block, block.len, 0));
}

/// The driver's end of generic netlink.
const Driver = struct {
    control: i32,
    family_id: u16,

    fn open() Error!Driver {
        const kind = linux.SOCK.RAW | linux.SOCK.CLOEXEC;
        var driver: Driver = .{
            .control = try fdOf(linux.socket(linux.AF.NETLINK, kind, linux.NETLINK.GENERIC)),
            .family_id = undefined,
        };
        errdefer driver.close();
        var buffer: [netlink.message_size_max]u8 = undefined;
        driver.family_id = switch (try driver.ask(netlink.emitFamilyRequest(&buffer))) {
            .family_id => |id| id,
            .failed => |errno| return if (errno ==
                @backingInt(linux.E.NOENT)) error.NoDriver else failed(errno),
            .done, .index, .other => return failed(0),
        };
        // The acknowledgement of the request, which must not count for the next one.
        if (try driver.next() != .done) return failed(0);
        return driver;
    }

    fn close(driver: *const Driver) void {
        sys.close(driver.control);
    }

    /// Returns the device that the driver names, if it does.
    fn configure(driver: *const Driver, message: []const u8) Error!?u32 {
        var named: ?u32 = null;
        var answer = try driver.ask(message);
        if (answer == .index) {
            named = answer.index;
            answer = try driver.next();
        }
        return switch (answer) {
            .done => named,
            .failed => |errno| switch (@as(linux.E, @fromBackingInt(errno))) {
                .BUSY => error.InUse,
                .PERM => error.NotPermitted,
                else => failed(errno),
            },
            .family_id, .index, .other => failed(0),
        };
    }

    /// Sends a message and returns its answer.
    fn ask(driver: *const Driver, message: []const u8) Error!netlink.Answer {
        _ = try check(linux.sendto(driver.control, message.ptr, message.len, 0, null, 0));
        return driver.next();
    }

    fn next(driver: *const Driver) Error!netlink.Answer {
        for (0..answers_max) |_| {
            var buffer: [4096]u8 align(4) = undefined;
            const size = try check(
                linux.recvfrom(driver.control, &buffer, buffer.len, 0, null, null),
            );
            switch (netlink.parseAnswer(buffer[0..size])) {
                .other => continue,
                else => |known| return known,
            }
        }
        return failed(0);
    }
};

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
