//! The format of a difference: the file that turns a store with one version of a vDisk, or with
//! none, into a store that has another (packages/proto/DIFFERENCE.md). Here are its bytes alone:
//! the header, the heads of frames, and the runs of blocks in a frame.
//!
//! A file is untrusted: whatever it says, a header or a frame that is accepted is possible by
//! itself, and takes at most `raw_size_max` bytes of memory.

const std = @import("std");
const base = @import("base");
const block = @import("../block.zig");
const manifest_module = @import("../tree/manifest.zig");
const assert = std.debug.assert;
const Sha256 = base.Sha256;
const Uuid = base.Uuid;

const BootFile = manifest_module.BootFile;
const Manifest = manifest_module.Manifest;

pub const magic = "BFDELTA1".*;
const format: u32 = 1;

pub const header_size = 4096;
pub const frame_head_size = 64;
/// Bytes of a frame before it is packed.
pub const raw_size_max = 1 << 20;
pub const run_size = 12;
pub const runs_max = 1024;
/// A file is cut into pieces of this size, by which it travels; the last may be shorter.
pub const piece_size = 4 << 20;
/// JSON has no larger whole numbers.
const number_max = (1 << 53) - 1;
const signed_size = header_size - Sha256.digest_length;

/// `NotADifference`: foreign bytes. `TooNew`: a later format. `Damaged`: bytes were changed.
/// `Malformed`: intact, but with impossible values. `Truncated`: the file ends too early.
pub const Fault = error{ NotADifference, TooNew, Damaged, Malformed, Truncated, ReadFailed };

/// What the difference is between, and all that the manifest of its version says except what only
/// one store knows.
pub const Header = struct {
    organization: Uuid,
    vdisk: Uuid,
    version: Uuid,
    /// The version that this one was made from; zeros for a base. It need not be in the store.
    parent: Uuid,
    /// The version whose blocks are left out; zeros: none are.
    base: Uuid,
    number: u32,
    incarnation: u64,
    counter: u64,
    created_unix_ms: u64,
    disk_size: u64,
    root: block.Hash,
    base_root: block.Hash,
    kernel: ?BootFile,
    initrd: ?BootFile,
    command_line: @FieldType(Manifest, "command_line"),
    name: @FieldType(Manifest, "name"),
    note: @FieldType(Manifest, "note"),

    pub fn of(made: *const Manifest, before: ?*const Manifest) Header {
        return .{
            .organization = made.organization,
            .vdisk = made.vdisk,
            .version = made.version,
            .parent = made.parent,
            .base = if (before) |known| known.version else .zero,
            .number = made.number,
            .incarnation = made.incarnation,
            .counter = made.counter,
            .created_unix_ms = made.created_unix_ms,
            .disk_size = made.disk_size,
            .root = made.root.hash,
            .base_root = if (before) |known| known.root.hash else block.zero_hash,
            .kernel = made.kernel,
            .initrd = made.initrd,
            .command_line = made.command_line,
            .name = made.name,
            .note = made.note,
        };
    }

    pub fn blockCount(header: *const Header) u64 {
        return block.blockCount(header.disk_size);
    }

    pub fn encode(header: *const Header) [header_size]u8 {
        assert(header.isPossible());
        var bytes: [header_size]u8 = @splat(0);
        var writer: base.ByteWriter = .init(bytes[0..signed_size]);
        header.write(&writer) catch unreachable;
        Sha256.hash(bytes[0..signed_size], bytes[signed_size..], .{});
        return bytes;
    }

    fn write(header: *const Header, writer: *base.ByteWriter) base.ByteWriter.Error!void {
        try writer.bytes(&magic);
        try writer.int(u32, format);
        for ([_]Uuid{
            header.organization,
            header.vdisk,
            header.version,
            header.parent,
            header.base,
        }) |id| try writer.bytes(&id.bytes);
        try writer.int(u32, header.number);
        for ([_]u64{
            header.incarnation,
            header.counter,
            header.created_unix_ms,
            header.disk_size,
        }) |number| try writer.int(u64, number);
        try writer.bytes(&header.root);
        try writer.bytes(&header.base_root);
        for ([_]?BootFile{ header.kernel, header.initrd }) |file| {
            const given = file orelse BootFile{ .hash = block.zero_hash, .size = 0 };
            try writer.bytes(&given.hash);
            try writer.int(u64, given.size);
        }
        for ([_][]const u8{
            header.command_line.constSlice(),
            header.name.constSlice(),
            header.note.constSlice(),
        }) |text| {
            try writer.int(u16, @intCast(text.len));
            try writer.bytes(text);
        }
    }

    pub fn decode(bytes: *const [header_size]u8) Fault!Header {
        if (!std.mem.eql(u8, bytes[0..magic.len], &magic)) return error.NotADifference;
        var digest: [Sha256.digest_length]u8 = undefined;
        Sha256.hash(bytes[0..signed_size], &digest, .{});
        if (!std.mem.eql(u8, &digest, bytes[signed_size..])) return error.Damaged;
        var cursor: base.Cursor = .init(bytes[magic.len..signed_size]);
        if ((cursor.int(u32) catch unreachable) != format) return error.TooNew;
        const header = read(&cursor) catch return error.Malformed;
        if (!std.mem.allEqual(u8, cursor.rest(), 0)) return error.Malformed;
        return if (header.isPossible()) header else error.Malformed;
    }

    fn read(cursor: *base.Cursor) !Header {
        var header: Header = undefined;
        inline for (.{ "organization", "vdisk", "version", "parent", "base" }) |field|
            @field(header, field) = .fromBytes((try cursor.array(16)).*);
        header.number = try cursor.int(u32);
        inline for (.{ "incarnation", "counter", "created_unix_ms", "disk_size" }) |field|
            @field(header, field) = try cursor.int(u64);
        inline for (.{ "root", "base_root" }) |field|
            @field(header, field) = (try cursor.array(32)).*;
        inline for (.{ "kernel", "initrd" }) |field| {
            const hash = (try cursor.array(32)).*;
            const size = try cursor.int(u64);
            @field(header, field) = if (size == 0) null else .{ .hash = hash, .size = size };
        }
        inline for (.{ "command_line", "name", "note" }) |field|
            @field(header, field) = try .fromSlice(try cursor.bytes(try cursor.int(u16)));
        return header;
    }

    fn isPossible(header: *const Header) bool {
        if (header.disk_size == 0 or header.disk_size > manifest_module.disk_size_max) return false;
        if (header.disk_size % 512 != 0 or header.number == 0) return false;
        if (header.version.eql(.zero) or header.vdisk.eql(.zero)) return false;
        if (header.version.eql(header.base)) return false;
        if (header.base.eql(.zero) and !block.isZeros(&header.base_root)) return false;
        if (header.initrd != null and header.kernel == null) return false;
        for ([_]u64{ header.incarnation, header.counter, header.created_unix_ms }) |number|
            if (number > number_max) return false;
        for ([_][]const u8{ header.name.constSlice(), header.note.constSlice() }) |text|
            for (text) |byte| if (std.ascii.isControl(byte)) return false;
        return true;
    }
};

pub const Kind = enum(u8) {
    kernel = 1,
    initrd = 2,
    /// Runs of blocks, and the data of those that are not zeros.
    blocks = 3,
    /// The last frame.
    end = 4,
};

pub const Codec = enum(u8) {
    stored = 0,
    /// RFC 1951, without a container.
    deflate = 1,
};

pub const FrameHead = struct {
    kind: Kind,
    codec: Codec,
    raw_size: u32,
    packed_size: u32,
    /// Runs of a frame of blocks; otherwise 0.
    run_count: u32,
    /// Of blocks: the first block of the disk, and the one behind the last. Of a kernel or an
    /// initramfs: the range of its bytes. Of the end: the blocks with data in all frames, and 0.
    first: u64,
    end: u64,
    /// Of the 32 bytes before it and the packed bytes.
    digest: [Sha256.digest_length]u8 = undefined,

    pub fn encode(head: *const FrameHead, packed_bytes: []const u8) [frame_head_size]u8 {
        assert(head.isPossible() and packed_bytes.len == head.packed_size);
        var bytes: [frame_head_size]u8 = undefined;
        var writer: base.ByteWriter = .init(&bytes);
        head.write(&writer) catch unreachable;
        bytes[32..].* = digestOf(bytes[0..32], packed_bytes);
        return bytes;
    }

    fn write(head: *const FrameHead, writer: *base.ByteWriter) base.ByteWriter.Error!void {
        try writer.int(u8, @backingInt(head.kind));
        try writer.int(u8, @backingInt(head.codec));
        try writer.int(u16, 0);
        for ([_]u32{ head.raw_size, head.packed_size, head.run_count }) |number|
            try writer.int(u32, number);
        for ([_]u64{ head.first, head.end }) |number| try writer.int(u64, number);
        assert(writer.position == 32);
    }

    /// Checks what the head says by itself; `isIntact` checks its digest.
    pub fn decode(bytes: *const [frame_head_size]u8) error{Malformed}!FrameHead {
        var cursor: base.Cursor = .init(bytes);
        return read(&cursor) catch error.Malformed;
    }

    fn read(cursor: *base.Cursor) !FrameHead {
        const kind = std.enums.fromInt(Kind, try cursor.int(u8)) orelse return error.Malformed;
        const codec = std.enums.fromInt(Codec, try cursor.int(u8)) orelse return error.Malformed;
        if (try cursor.int(u16) != 0) return error.Malformed;
        const head: FrameHead = .{
            .kind = kind,
            .codec = codec,
            .raw_size = try cursor.int(u32),
            .packed_size = try cursor.int(u32),
            .run_count = try cursor.int(u32),
            .first = try cursor.int(u64),
            .end = try cursor.int(u64),
            .digest = (try cursor.array(Sha256.digest_length)).*,
        };
        return if (head.isPossible()) head else error.Malformed;
    }

    pub fn isIntact(
        head: *const FrameHead,
        bytes: *const [frame_head_size]u8,
        packed_bytes: []const u8,
    ) bool {
        return std.mem.eql(u8, &digestOf(bytes[0..32], packed_bytes), &head.digest);
    }

    fn isPossible(head: *const FrameHead) bool {
        if (head.raw_size > raw_size_max) return false;
        switch (head.codec) {
            .stored => if (head.packed_size != head.raw_size) return false,
            .deflate => if (head.packed_size == 0 or head.packed_size >= head.raw_size)
                return false,
        }
        return switch (head.kind) {
            .kernel, .initrd => head.run_count == 0 and head.raw_size > 0 and
                head.first < head.end and head.end - head.first == head.raw_size,
            .blocks => head.run_count > 0 and head.run_count <= runs_max and
                head.first < head.end and head.raw_size >= head.run_count * run_size and
                (head.raw_size - head.run_count * run_size) % block.block_size == 0,
            .end => head.run_count == 0 and head.raw_size == 0 and head.end == 0,
        };
    }

    /// Blocks with data in a frame of blocks.
    pub fn dataBlocks(head: *const FrameHead) u64 {
        if (head.kind != .blocks) return 0;
        return (head.raw_size - head.run_count * run_size) / block.block_size;
    }
};

fn digestOf(head: *const [32]u8, packed_bytes: []const u8) [Sha256.digest_length]u8 {
    var sha: Sha256 = .init(.{});
    sha.update(head);
    sha.update(packed_bytes);
    return sha.finalResult();
}

/// Consecutive blocks of the disk.
pub const Run = struct {
    first: u64,
    count: u32,
    is_zeros: bool,

    pub const count_max = (1 << 31) - 1;

    pub fn end(run: *const Run) u64 {
        return run.first + run.count;
    }

    pub fn encode(run: *const Run) [run_size]u8 {
        assert(run.count > 0 and run.count <= count_max);
        var bytes: [run_size]u8 = undefined;
        std.mem.writeInt(u64, bytes[0..8], run.first, .big);
        const zeros: u32 = if (run.is_zeros) 1 << 31 else 0;
        std.mem.writeInt(u32, bytes[8..12], run.count | zeros, .big);
        return bytes;
    }

    fn decode(bytes: *const [run_size]u8) Run {
        const count = std.mem.readInt(u32, bytes[8..12], .big);
        return .{
            .first = std.mem.readInt(u64, bytes[0..8], .big),
            .count = count & count_max,
            .is_zeros = count > count_max,
        };
    }
};

/// Decodes the runs of a frame of blocks. They ascend, fill the frame's range, and have all of its
/// data.
pub fn decodeRuns(
    head: *const FrameHead,
    raw: []const u8,
    into: *[runs_max]Run,
) error{Malformed}![]const Run {
    assert(head.kind == .blocks and raw.len == head.raw_size);
    const runs = into[0..head.run_count];
    var at = head.first;
    var data_blocks: u64 = 0;
    for (runs, 0..) |*run, index| {
        run.* = .decode(raw[index * run_size ..][0..run_size]);
        if (run.count == 0 or run.first < at) return error.Malformed;
        if (run.first >= head.end or run.count > head.end - run.first) return error.Malformed;
        if (!run.is_zeros) data_blocks += run.count;
        at = run.end();
    }
    if (runs[0].first != head.first or at != head.end) return error.Malformed;
    if (data_blocks != head.dataBlocks()) return error.Malformed;
    return runs;
}

/// Describes the fault as the end of a sentence that starts with the file's name.
pub fn sentence(fault: Fault) []const u8 {
    return switch (fault) {
        error.NotADifference => "is not a difference of versions",
        error.TooNew => "is of a later format than this program knows; update bootfarm-edge",
        error.Damaged => "is damaged: its bytes are not those that were packed; copy it again",
        error.Malformed => "contradicts itself: no version can be made of it; pack it again",
        error.Truncated => "ends too early; copy it again",
        error.ReadFailed => "cannot be read: the system reports an error",
    };
}
