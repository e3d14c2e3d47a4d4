//! The memory for read-ahead: allocated when the stream opens, freed when the boot is over.

const std = @import("std");
const linux = std.os.linux;
const base = @import("base");
const core = @import("core");
const sys = @import("host").sys;

const profile = @import("wire").stream.profile;
const ReadAhead = core.profile.ReadAhead;

const size_max = 64 << 20;
const part_of_memory = 16;

/// Takes at most what the profile needs. Null disables read-ahead: there is no profile, it is
/// switched off, or memory is short.
pub fn take(wanted: core.target.options.TargetOptions.ReadAhead, profile_size: u32) ?ReadAhead {
    if (profile_size == 0) return null;
    const limit: usize = switch (wanted) {
        .off => return null,
        .bytes => |bytes| bytes,
        .by_memory => std.mem.alignBackward(
            usize,
            @intCast(@min(size_max, freeMemory() / part_of_memory)),
            ReadAhead.slot_size,
        ),
    };
    if (limit < ReadAhead.cache_size_min) return null;
    const size = @max(
        ReadAhead.cache_size_min,
        @min(limit, profile_size / profile.entry_size * ReadAhead.slot_size),
    );
    const tables = map(@sizeOf(ReadAhead.Tables)) catch return null;
    const cache = map(size) catch {
        _ = linux.munmap(tables.ptr, tables.len);
        return null;
    };
    base.preferLargePages(cache);
    return .init(@ptrCast(tables.ptr), cache);
}

pub fn giveBack(ahead: *ReadAhead) void {
    _ = linux.munmap(ahead.cache.ptr, ahead.cache.len);
    _ = linux.munmap(@ptrCast(ahead.tables), @sizeOf(ReadAhead.Tables));
    ahead.* = undefined;
}

fn map(size: usize) sys.Error![]align(4096) u8 {
    const flags: linux.MAP = .{ .TYPE = .PRIVATE, .ANONYMOUS = true };
    const rc = linux.mmap(null, size, .{ .READ = true, .WRITE = true }, flags, -1, 0);
    const bytes: [*]align(4096) u8 = @ptrFromInt(try sys.check(rc));
    return bytes[0..size];
}

fn freeMemory() u64 {
    var info: linux.Sysinfo = undefined;
    if (linux.errno(linux.sysinfo(&info)) != .SUCCESS) return 0;
    return @as(u64, info.freeram) * info.mem_unit;
}
