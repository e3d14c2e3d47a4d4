//! Fuzzes differences of versions, which are untrusted: whatever a file says, reading it ends,
//! takes bounded memory, and gives blocks in ascending order on the disk of its header, or a fault.

const std = @import("std");
const base = @import("base");
const store = @import("store");
const fuzz_case = @import("case.zig");
const Case = fuzz_case.Case;
const Violation = fuzz_case.Violation;
const expect = fuzz_case.expect;

const block_size = store.block.block_size;
const Difference = store.Difference;
const format = store.difference_format;
const ImageSource = store.image_source.ImageSource;

/// Blocks of a disk; the last one has a sector.
const blocks_max = 4096;
const frames_max = 3;
const runs_max = 6;
const run_blocks_max = 3;
const frame_size_max = format.frame_head_size +
    runs_max * (format.run_size + run_blocks_max * block_size);
const file_size_max = format.header_size + (frames_max + 2) * frame_size_max;

var memory: [4 << 20]u8 = undefined;
var bytes: [file_size_max + 64]u8 = undefined;
var raw: [runs_max * (format.run_size + run_blocks_max * block_size)]u8 = undefined;
var piece: [1 << 20]u8 = undefined;
var packer: ?store.difference_codec.Packer = null;

/// A file as it is written.
const Writer = struct {
    case: *Case,
    size: usize = 0,
    /// Contradictions in intact frames.
    is_hostile: bool,

    fn add(writer: *Writer, part: []const u8) void {
        @memcpy(bytes[writer.size..][0..part.len], part);
        writer.size += part.len;
    }

    fn addFrame(writer: *Writer, given: format.FrameHead, contents: []const u8) void {
        var head = given;
        head.raw_size = @intCast(contents.len);
        const deflated = if (writer.case.prng.chance(1, 8)) deflate(contents) else null;
        const packed_bytes = deflated orelse contents;
        head.codec = if (deflated == null) .stored else .deflate;
        head.packed_size = @intCast(packed_bytes.len);
        var head_bytes = head.encode(packed_bytes);
        if (writer.is_hostile and writer.case.prng.chance(1, 8)) {
            const at: usize = @intCast(writer.case.prng.below(32));
            head_bytes[at] = writer.case.byte();
            var sha: base.Sha256 = .init(.{});
            sha.update(head_bytes[0..32]);
            sha.update(packed_bytes);
            head_bytes[32..].* = sha.finalResult();
        }
        writer.add(&head_bytes);
        writer.add(packed_bytes);
    }
};

fn deflate(contents: []const u8) ?[]const u8 {
    if (packer == null)
        packer = store.difference_codec.Packer.init(std.heap.smp_allocator) catch return null;
    return packer.?.deflate(contents);
}

pub fn file(case: *Case) Violation!bool {
    const prng = &case.prng;
    if (prng.chance(1, 64)) return readAll(case.garbage(&bytes));
    var writer: Writer = .{ .case = case, .is_hostile = prng.chance(1, 2) };
    const header = anyHeader(case);
    writer.add(&header.encode());
    if (header.kernel) |*kernel| writer.addFrame(.{
        .kind = .kernel,
        .codec = .stored,
        .raw_size = 0,
        .packed_size = 0,
        .run_count = 0,
        .first = 0,
        .end = kernel.size,
    }, raw[0..@intCast(kernel.size)]);
    var at: u64 = 0;
    var data_blocks: u64 = 0;
    for (0..@intCast(prng.below(frames_max + 1))) |_|
        data_blocks += addBlocks(&writer, &header, &at);
    writer.addFrame(.{
        .kind = .end,
        .codec = .stored,
        .raw_size = 0,
        .packed_size = 0,
        .run_count = 0,
        .first = if (writer.is_hostile and prng.chance(1, 16)) prng.nextU64() else data_blocks,
        .end = 0,
    }, "");
    if (prng.chance(1, 2)) return readAll(bytes[0..writer.size]);
    return readAll(case.mutate(&bytes, writer.size));
}

fn anyHeader(case: *Case) format.Header {
    const prng = &case.prng;
    return .{
        .organization = .fromRandom(@splat(1)),
        .vdisk = .fromRandom(@splat(2)),
        .version = .fromRandom(@splat(3)),
        .parent = if (prng.chance(1, 2)) .zero else .fromRandom(@splat(4)),
        .base = .fromRandom(@splat(5)),
        .number = prng.nextU32() | 1,
        .incarnation = 0,
        .counter = prng.below(1 << 53),
        .created_unix_ms = 0,
        .disk_size = prng.below(blocks_max) * block_size + 512,
        .root = @splat(6),
        .base_root = @splat(7),
        .kernel = case.maybe(store.manifest.BootFile{ .hash = @splat(8), .size = 100 }),
        .initrd = null,
        .command_line = .empty,
        .name = .empty,
        .note = .empty,
    };
}

/// Returns the number of blocks with data.
fn addBlocks(writer: *Writer, header: *const format.Header, at: *u64) u64 {
    const prng = &writer.case.prng;
    var runs: [runs_max]format.Run = undefined;
    var count: usize = 0;
    var blocks: usize = 0;
    for (0..@intCast(prng.between(1, runs_max))) |_| {
        const first = at.* + prng.below(40);
        const is_zeros = prng.chance(1, 3);
        const size: u32 = @intCast(prng.between(1, run_blocks_max));
        // Some runs of a hostile file end behind the disk, or overlap.
        const is_on_disk = first + size <= header.blockCount();
        if (!is_on_disk and !(writer.is_hostile and prng.chance(1, 4))) break;
        runs[count] = .{ .first = first, .count = size, .is_zeros = is_zeros };
        at.* = runs[count].end() - @intFromBool(writer.is_hostile and prng.chance(1, 16));
        if (!is_zeros) blocks += size;
        count += 1;
    }
    if (count == 0) return 0;
    for (runs[0..count], 0..) |*run, index|
        raw[index * format.run_size ..][0..format.run_size].* = run.encode();
    const contents = raw[0 .. count * format.run_size + blocks * block_size];
    const last_end = runs[count - 1].end();
    writer.addFrame(.{
        .kind = .blocks,
        .codec = .stored,
        .raw_size = 0,
        .packed_size = 0,
        .run_count = @intCast(count),
        .first = runs[0].first,
        .end = @max(last_end, runs[0].first + 1),
    }, contents);
    return blocks;
}

fn readAll(contents: []const u8) Violation!bool {
    var fixed: std.heap.FixedBufferAllocator = .init(&memory);
    var from: File = .{ .bytes = contents };
    var difference = Difference.open(fixed.allocator(), from.source()) catch |fault| {
        try expect(fault != error.OutOfMemory, "a difference takes bounded memory");
        return false;
    };
    defer difference.close(fixed.allocator());
    const source = difference.source();
    const disk_size = difference.header.disk_size;
    var at: u64 = 0;
    while (source.nextData(at)) |found| {
        try expect(found >= at and found % block_size == 0, "blocks ascend");
        if (difference.fault) |fault| {
            try expect(format.sentence(fault).len > 0, "a fault has a sentence");
            var failed_at: u64 = 0;
            const result = source.read(piece[0..block_size], found, &failed_at);
            try expect(result == error.ReadFailed, "a fault is reported by the read");
            try expect(failed_at <= contents.len, "a fault is in the file");
            return false;
        }
        try expect(found < disk_size, "blocks are on the disk");
        const end = @min(source.dataEnd(found).?, disk_size, found + piece.len);
        try expect(end > found, "a run has bytes");
        var failed_at: u64 = 0;
        const wanted = piece[0..@intCast(end - found)];
        const count = source.read(wanted, found, &failed_at) catch
            return fuzz_case.violated("a run in an intact frame is read");
        try expect(count == wanted.len, "a run is read as a whole");
        at = std.mem.alignForward(u64, end, block_size);
        if (at >= disk_size) break;
    }
    return true;
}

const File = struct {
    bytes: []const u8,

    fn source(on: *File) ImageSource {
        return .{
            .context = on,
            .vtable = &.{ .read = read, .nextData = nextData, .now = now },
            .size = on.bytes.len,
            .is_positional = true,
        };
    }

    fn read(
        context: *anyopaque,
        buffer: []u8,
        offset: u64,
        _: *u64,
    ) store.image_source.ReadError!usize {
        const on: *const File = @ptrCast(@alignCast(context));
        const rest = on.bytes[@min(on.bytes.len, @as(usize, @intCast(offset)))..];
        const count = @min(rest.len, buffer.len);
        @memcpy(buffer[0..count], rest[0..count]);
        return count;
    }

    fn nextData(_: *anyopaque, offset: u64) ?u64 {
        return offset;
    }

    fn now(context: *anyopaque) ?ImageSource.Now {
        const on: *const File = @ptrCast(@alignCast(context));
        return .{ .stamp = .{ .kind = .file }, .size = on.bytes.len };
    }
};
