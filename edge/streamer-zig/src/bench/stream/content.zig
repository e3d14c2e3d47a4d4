//! What a measured disk contains: the bytes of a pattern, or those of an image file, which every
//! read is compared with.

const std = @import("std");
const base = @import("base");
const sys = @import("host").sys;
const pattern = @import("pattern.zig");
const linux = std.os.linux;

pub const Content = union(enum) {
    pattern,
    image: []const u8,

    /// `path` is empty for the pattern. An image stays in memory until the process ends.
    pub fn open(path: []const u8) sys.Error!Content {
        if (path.len == 0) return .pattern;
        const name = std.posix.toPosixPath(path) catch return error.SystemCallFailed;
        const flags: linux.O = .{ .CLOEXEC = true };
        const fd: i32 = @intCast(try sys.check(linux.open(&name, flags, 0)));
        defer sys.close(fd);
        const size: usize = @intCast(try sys.check(linux.lseek(fd, 0, linux.SEEK.END)));
        _ = try sys.check(linux.lseek(fd, 0, linux.SEEK.SET));
        // A copy of its own: what one server has read from the file would otherwise be in the
        // processor's cache for the comparison, and what another one did not need is not.
        const bytes = base.allocUntouched(std.heap.page_allocator, u8, size) catch
            return error.SystemCallFailed;
        base.preferLargePages(bytes);
        var done: usize = 0;
        while (done < size) {
            const rest = bytes[done..];
            const count = try sys.check(linux.read(fd, rest.ptr, rest.len));
            if (count == 0) return error.SystemCallFailed;
            done += count;
        }
        return .{ .image = bytes };
    }

    pub fn isRight(content: *const Content, bytes: []const u8, offset: u64) bool {
        switch (content.*) {
            .pattern => return pattern.isRight(bytes, offset),
            .image => |image| {
                if (offset > image.len or bytes.len > image.len - offset) return false;
                return std.mem.eql(u8, bytes, image[@intCast(offset)..][0..bytes.len]);
            },
        }
    }
};
