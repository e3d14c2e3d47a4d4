//! The disk of a report log in memory (core/uplink/report_log.zig): what was written is there after a crash, but for the record that
//! a crash of the process tears.

const std = @import("std");
const base = @import("base");
const assert = std.debug.assert;

pub const LogDisk = @This();

const files_max = 4200;
const name_size_max = 64;

const Entry = struct { name: base.BoundedArray(u8, name_size_max) = .empty, bytes: std.ArrayList(u8) = .empty };

gpa: std.mem.Allocator,
entries: []Entry,
/// The edge's wall clock.
unix_ms: u64 = 0,
/// The file that was appended to last, and where its last record begins.
last_file: ?u32 = null,
last_size: usize = 0,
size: u64 = 0,
size_most: u64 = 0,

pub fn init(gpa: std.mem.Allocator) error{OutOfMemory}!LogDisk {
    const entries = try gpa.alloc(Entry, files_max);
    @memset(entries, .{});
    return .{ .gpa = gpa, .entries = entries };
}

pub fn deinit(disk: *LogDisk) void {
    disk.forget();
    disk.gpa.free(disk.entries);
    disk.* = undefined;
}

/// Everything is gone.
pub fn forget(disk: *LogDisk) void {
    for (disk.entries) |*entry| disk.drop(entry);
}

/// Cuts the last record at `kept` bytes, as a process does that is killed while it writes; false: there is none.
pub fn tear(disk: *LogDisk, prng: *base.Prng) bool {
    const index = disk.last_file orelse return false;
    const bytes = &disk.entries[index].bytes;
    if (disk.entries[index].name.count == 0 or bytes.items.len <= disk.last_size) return false;
    const cut = prng.between(disk.last_size, bytes.items.len - 1);
    disk.size -= bytes.items.len - cut;
    bytes.shrinkRetainingCapacity(@intCast(cut));
    disk.last_file = null;
    return true;
}

fn drop(disk: *LogDisk, entry: *Entry) void {
    disk.size -= entry.bytes.items.len;
    entry.bytes.deinit(disk.gpa);
    entry.* = .{};
}

/// What the log sees: a handle is the index of an entry.
pub const Files = struct {
    disk: *LogDisk,

    pub const File = u32;
    pub const Error = error{DiskFailed};

    pub fn lock(_: *Files) void {}
    pub fn unlock(_: *Files) void {}
    pub fn close(_: *Files, _: File) void {}
    pub fn sync(_: *Files, _: File) Error!void {}
    pub fn syncNames(_: *Files) void {}

    pub const Iterator = struct {
        entries: []const Entry,

        pub fn next(iterator: *Iterator) Error!?[]const u8 {
            while (iterator.entries.len > 0) {
                const entry = &iterator.entries[0];
                iterator.entries = iterator.entries[1..];
                if (entry.name.count > 0) return entry.name.constSlice();
            }
            return null;
        }
    };

    pub fn iterate(files: *Files) Iterator {
        return .{ .entries = files.disk.entries };
    }

    fn find(files: *Files, name: []const u8) ?File {
        for (files.disk.entries, 0..) |*entry, index| {
            if (std.mem.eql(u8, entry.name.constSlice(), name)) return @intCast(index);
        }
        return null;
    }

    pub fn make(files: *Files, name: []const u8) Error!File {
        if (files.find(name) != null) return error.DiskFailed;
        for (files.disk.entries, 0..) |*entry, index| if (entry.name.count == 0) {
            for (name) |byte| entry.name.appendAssumeCapacity(byte);
            return @intCast(index);
        };
        return error.DiskFailed;
    }

    pub fn openOrMake(files: *Files, name: []const u8) Error!File {
        return files.find(name) orelse files.make(name);
    }

    pub fn open(files: *Files, name: []const u8) Error!File {
        return files.find(name) orelse error.DiskFailed;
    }

    pub fn delete(files: *Files, name: []const u8) Error!void {
        files.disk.drop(&files.disk.entries[files.find(name) orelse return error.DiskFailed]);
    }

    pub fn append(files: *Files, file: File, bytes: []const u8) Error!void {
        const disk = files.disk;
        const entry = &disk.entries[file];
        disk.last_file = file;
        disk.last_size = entry.bytes.items.len;
        entry.bytes.appendSlice(disk.gpa, bytes) catch @panic("no memory");
        disk.size += bytes.len;
        disk.size_most = @max(disk.size_most, disk.size);
    }

    pub fn truncate(files: *Files, file: File, size: u64) Error!void {
        const bytes = &files.disk.entries[file].bytes;
        assert(size <= bytes.items.len);
        files.disk.size -= bytes.items.len - size;
        bytes.shrinkRetainingCapacity(@intCast(size));
    }

    pub fn readAt(files: *Files, file: File, buffer: []u8, offset: u64) Error!usize {
        const bytes = files.disk.entries[file].bytes.items;
        if (offset >= bytes.len) return 0;
        const rest = bytes[@intCast(offset)..];
        const size = @min(rest.len, buffer.len);
        @memcpy(buffer[0..size], rest[0..size]);
        return size;
    }

    pub fn writeAt(files: *Files, file: File, bytes: []const u8, offset: u64) Error!void {
        const held = &files.disk.entries[file].bytes;
        const end: usize = @intCast(offset + bytes.len);
        if (end > held.items.len) {
            files.disk.size += end - held.items.len;
            held.resize(files.disk.gpa, end) catch @panic("no memory");
        }
        @memcpy(held.items[@intCast(offset)..end], bytes);
    }

    pub fn unixMs(files: *Files) u64 {
        return files.disk.unix_ms;
    }
};
