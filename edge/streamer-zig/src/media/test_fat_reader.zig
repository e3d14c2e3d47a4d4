//! A reader of FAT16 volumes for tests, which follows chains and checks everything. A file's
//! clusters must be contiguous, so that its content is one slice.

const std = @import("std");

const entry_size = 32;

pub const Volume = struct {
    bytes: []const u8,
    hidden_sectors: u32,
    cluster_size: usize,
    fat: []const u8,
    fat_copy: []const u8,
    root: []const u8,
    data: []const u8,
    cluster_count: usize,

    pub fn open(bytes: []const u8) !Volume {
        const sector = int(u16, bytes, 11);
        const cluster_size = @as(usize, bytes[13]) * sector;
        const fat_begin = @as(usize, int(u16, bytes, 14)) * sector;
        try expect(bytes[16] == 2);
        const fat_size = @as(usize, int(u16, bytes, 22)) * sector;
        const root_begin = fat_begin + 2 * fat_size;
        const root_size = @as(usize, int(u16, bytes, 17)) * entry_size;
        const small_total: u32 = int(u16, bytes, 19);
        const total = if (small_total != 0) small_total else int(u32, bytes, 32);
        try expect(total * sector == bytes.len);
        try expect(std.mem.eql(u8, bytes[510..512], "\x55\xaa"));
        const data = bytes[root_begin + root_size ..];
        const count = data.len / cluster_size;
        // Fewer clusters make a FAT12, more a FAT32, whatever the label says.
        try expect(count >= 4085);
        try expect(count < 65525);
        try expect(fat_size >= (count + 2) * 2);
        return .{
            .bytes = bytes,
            .hidden_sectors = int(u32, bytes, 28),
            .cluster_size = cluster_size,
            .fat = bytes[fat_begin..][0..fat_size],
            .fat_copy = bytes[fat_begin + fat_size ..][0..fat_size],
            .root = bytes[root_begin..][0..root_size],
            .data = data,
            .cluster_count = count,
        };
    }

    /// `path` has names separated by `/`; case matters, as in long names.
    pub fn file(volume: *const Volume, path: []const u8) ![]const u8 {
        var folder = volume.root;
        var names = std.mem.splitScalar(u8, path, '/');
        while (names.next()) |name| {
            const entry = try find(folder, name);
            const is_folder = entry[11] & 0x10 != 0;
            try expect(is_folder == (names.peek() != null));
            const chain = try volume.chainFrom(int(u16, entry, 26));
            if (is_folder) folder = chain else return chain[0..int(u32, entry, 28)];
        }
        unreachable;
    }

    /// Checks that both tables agree and that no cluster is in two chains.
    pub fn checkStructure(volume: *const Volume) !void {
        try expect(std.mem.eql(u8, volume.fat, volume.fat_copy));
        try expect(int(u16, volume.fat, 0) == 0xfff8);
        var is_followed: std.bit_set.Static(1 << 16) = .empty;
        for (2..volume.cluster_count + 2) |cluster| {
            const next = int(u16, volume.fat, cluster * 2);
            if (next == 0 or next >= 0xfff8) continue;
            try expect(next < volume.cluster_count + 2);
            try expect(!is_followed.isSet(next));
            is_followed.set(next);
        }
    }

    fn chainFrom(volume: *const Volume, first: u16) ![]const u8 {
        try expect(first >= 2);
        var cluster = first;
        var count: usize = 1;
        while (true) : (count += 1) {
            const next = int(u16, volume.fat, @as(usize, cluster) * 2);
            if (next >= 0xfff8) break;
            try expect(next == cluster + 1);
            cluster = next;
        }
        const begin = @as(usize, first - 2) * volume.cluster_size;
        return volume.data[begin..][0 .. count * volume.cluster_size];
    }
};

fn find(folder: []const u8, name: []const u8) ![]const u8 {
    var long: [260]u8 = undefined;
    var long_size: usize = 0;
    var at: usize = 0;
    while (at < folder.len and folder[at] != 0) : (at += entry_size) {
        const entry = folder[at..][0..entry_size];
        if (entry[11] == 0x0f) {
            const begin = (@as(usize, entry[0] & 0x3f) - 1) * 13;
            if (entry[0] & 0x40 != 0) long_size = begin;
            for (0..13) |index| {
                const place = if (index < 5) 1 + index * 2 else //
                    if (index < 11) 14 + (index - 5) * 2 else 28 + (index - 11) * 2;
                const unit = int(u16, entry, place);
                if (unit == 0 or unit == 0xffff) break;
                long[begin + index] = @intCast(unit);
                long_size = @max(long_size, begin + index + 1);
            }
            continue;
        }
        var short: [12]u8 = undefined;
        const found = if (long_size > 0) long[0..long_size] else shortName(entry, &short);
        if (entry[11] & 0x08 == 0 and std.mem.eql(u8, found, name)) return entry;
        long_size = 0;
    }
    return error.FileNotFound;
}

fn shortName(entry: []const u8, buffer: *[12]u8) []const u8 {
    const stem = std.mem.trimEnd(u8, entry[0..8], " ");
    const extension = std.mem.trimEnd(u8, entry[8..11], " ");
    const dot = if (extension.len > 0) "." else "";
    return std.mem.print(buffer, "{s}{s}{s}", .{ stem, dot, extension }) catch unreachable;
}

fn int(comptime T: type, bytes: []const u8, at: usize) T {
    return std.mem.readInt(T, bytes[at..][0..@sizeOf(T)], .little);
}

fn expect(is_so: bool) !void {
    if (!is_so) return error.WrongStructure;
}
