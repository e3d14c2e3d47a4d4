//! Measures how small the units of a file get, and what packing and unpacking them takes.

const std = @import("std");
const lz4 = @import("codec").lz4;
const linux = std.os.linux;

const unit_sizes = [_]usize{ 4 << 10, 16 << 10, 32 << 10, 64 << 10 };
/// 0: quickly.
const depths = [_]u16{ 0, 8, 64 };
const unpacks = 3;

const Sum = struct { raw: u64 = 0, stored: u64 = 0, pack_ns: u64 = 0, unpack_ns: u64 = 0 };

/// Prints one line of JSON for each size of units and depth of search; units of zeros are left out.
pub fn measure(gpa: std.mem.Allocator, bytes: []const u8, out: *std.Io.Writer) !void {
    const table = try gpa.create(lz4.Table);
    const search = try gpa.create(lz4.Search);
    const packed_unit = try gpa.alloc(u8, lz4.sizeMax(lz4.unit_size_max));
    const unit = try gpa.alloc(u8, lz4.unit_size_max);
    for (unit_sizes) |size| for (depths) |depth| {
        var sum: Sum = .{};
        var at: usize = 0;
        while (at + size <= bytes.len) : (at += size) {
            const of = bytes[at..][0..size];
            if (std.mem.allEqual(u8, of, 0)) continue;
            sum.raw += size;
            const room = packed_unit[0 .. size - 1];
            const begin_ns = processorNs();
            const result = if (depth == 0)
                lz4.pack(table, room, of)
            else
                lz4.packSmall(search, room, of, depth);
            const end_ns = processorNs();
            sum.pack_ns += end_ns - begin_ns;
            sum.stored += result orelse size;
            const short = room[0 .. result orelse continue];
            for (0..unpacks) |_| try lz4.unpack(unit[0..size], short);
            sum.unpack_ns += (processorNs() - end_ns) / unpacks;
            if (!std.mem.eql(u8, unit[0..size], of)) return error.Differs;
        }
        try out.print(
            "{{\"unitBytes\":{d},\"depth\":{d},\"rawBytes\":{d},\"storedBytes\":{d}," ++
                "\"packNs\":{d},\"unpackNs\":{d}}}\n",
            .{ size, depth, sum.raw, sum.stored, sum.pack_ns, sum.unpack_ns },
        );
    };
}

fn processorNs() u64 {
    var time: linux.timespec = undefined;
    _ = linux.clock_gettime(.THREAD_CPUTIME_ID, &time);
    return @as(u64, @intCast(time.sec)) * std.time.ns_per_s + @as(u64, @intCast(time.nsec));
}
