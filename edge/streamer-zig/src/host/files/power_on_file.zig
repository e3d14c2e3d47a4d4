//! Ids of power-on commands that were carried out, on disk: a restarted edge does not wake a
//! machine twice.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const sys = @import("../sys.zig");
const linux = std.os.linux;

const PowerOnLog = core.uplink.sender.PowerOnLog;

pub const PowerOnFile = struct {
    fd: i32,
    count: u64 = 0,

    /// Records of 16 bytes; beyond this many the file begins anew with the ids in memory.
    const count_max = 4 * PowerOnLog.capacity;

    pub fn open(dir_fd: i32, log: *PowerOnLog) sys.Error!PowerOnFile {
        const flags: linux.O = .{ .ACCMODE = .RDWR, .CREAT = true, .CLOEXEC = true };
        const fd: i32 = @intCast(try sys.check(linux.openat(dir_fd, "power-ons", flags, 0o600)));
        var file: PowerOnFile = .{ .fd = fd };
        var id: [16]u8 = undefined;
        while (try sys.readAt(
            fd,
            &id,
            file.count * id.len,
        ) == id.len) : (file.count += 1) _ = log.add(.fromBytes(id));
        return file;
    }

    /// Best effort: without it a restart may wake a machine again, which does no harm.
    pub fn append(file: *PowerOnFile, log: *const PowerOnLog, id: base.Uuid) void {
        if (file.count >= count_max) return file.rewrite(log);
        const rc = linux.pwrite(
            file.fd,
            &id.bytes,
            id.bytes.len,
            @intCast(file.count * id.bytes.len),
        );
        if ((sys.check(rc) catch 0) == id.bytes.len) file.count += 1;
    }

    fn rewrite(file: *PowerOnFile, log: *const PowerOnLog) void {
        file.count = 0;
        for (0..PowerOnLog.capacity) |step| {
            // From the oldest to the newest.
            const id = log.ids[(log.next + step) % PowerOnLog.capacity];
            const rc = linux.pwrite(
                file.fd,
                &id.bytes,
                id.bytes.len,
                @intCast(file.count * id.bytes.len),
            );
            if ((sys.check(rc) catch 0) != id.bytes.len) break;
            file.count += 1;
        }
        _ = linux.ftruncate(file.fd, @intCast(file.count * 16));
    }
};

const testing = std.testing;

test "ids survive a restart" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    const id: base.Uuid = .fromRandom(@splat(3));
    var log: PowerOnLog = .{};
    var file = try PowerOnFile.open(tmp.dir.handle, &log);
    try testing.expect(log.add(id));
    file.append(&log, id);
    sys.close(file.fd);
    var again: PowerOnLog = .{};
    file = try PowerOnFile.open(tmp.dir.handle, &again);
    defer sys.close(file.fd);
    try testing.expect(!again.add(id));
}
