//! An image as the disk that it holds: a file and, if it is a difference, its parents. Readers of
//! disks and the importer see one disk in which unallocated ranges are zeros.

const std = @import("std");
const base = @import("base");
const store = @import("store");
const extent_module = @import("extent.zig");
const fault_module = @import("fault.zig");
const File = @import("file.zig");
const Layer = @import("layer.zig");
const ParentLink = @import("parent_link.zig");
const signature = @import("signature.zig");
const Unpacker = @import("unpack.zig");
const Allocator = std.mem.Allocator;
const BlockSource = store.BlockSource;
const Fault = fault_module.Fault;
const Format = signature.Format;
const ImageSource = store.image_source.ImageSource;
const Stamp = store.image_source.Stamp;

/// Files of one image, all its differences included.
pub const layers_max = 64;

/// Must not move once it is open. Several threads may read it at once.
pub const Chain = @This();

gpa: Allocator,
layers: base.BoundedArray(Layer, layers_max),
unpacker: Unpacker,
/// The file that keeps the image from being opened: 0 is the image, 1 its parent.
failed_layer: usize,
/// What that file was recognized as; null before.
failed_format: ?Format,
/// The last fault of a read and its file: readers of disks have no name for it.
read_fault: std.atomic.Value(u32),

/// Opens the files of parents by their names in the one directory where they may be.
pub const Directory = struct {
    context: *anyopaque,
    /// The source stays open as long as the chain. Throws `ParentMissing` if there is no such file.
    open: *const fn (
        *anyopaque,
        name: []const u8,
    ) error{ ParentMissing, ParentUnreadable }!ImageSource,
};

pub const Options = struct {
    /// Null recognizes the format. Any other than that of the content is refused, but for raw:
    /// a raw disk may begin with any bytes.
    format: ?Format = null,
    directory: Directory,
};

/// `gpa` must be safe for several threads. After a fault the chain is closed, and
/// `failed_layer` and `failed_format` describe the file.
pub fn open(
    chain: *Chain,
    gpa: Allocator,
    source_file: ImageSource,
    options: *const Options,
) Fault!void {
    chain.* = .{
        .gpa = gpa,
        .layers = .empty,
        .unpacker = .init(gpa),
        .failed_layer = 0,
        .failed_format = null,
        .read_fault = .init(0),
    };
    errdefer chain.close();
    try chain.append(source_file, options.format);
    while (chain.last().parentLink()) |link| {
        chain.failed_format = null;
        const parent = try openParent(link, &options.directory);
        if (chain.hasFile(parent)) return error.ParentCycle;
        if (chain.layers.isFull()) {
            chain.failed_layer = 0;
            return error.ParentsTooMany;
        }
        chain.failed_layer += 1;
        try chain.append(parent, if (link.is_raw) .raw else null);
        if (!link.isIdentity(chain.last().identity())) {
            chain.failed_layer -= 1;
            return error.ParentOther;
        }
    }
}

pub fn close(chain: *Chain) void {
    for (chain.layers.slice()) |*layer| layer.close(chain.gpa);
    chain.layers = .empty;
    chain.unpacker.deinit();
    chain.unpacker = .init(chain.gpa);
}

fn append(chain: *Chain, source_file: ImageSource, wanted: ?Format) Fault!void {
    const file: File = .init(source_file);
    const format = if (wanted == .raw) .raw else try signature.recognize(&file);
    chain.failed_format = format;
    if (wanted) |known| if (known != format) return error.OtherFormat;
    const layer: Layer = try .open(chain.gpa, file, format);
    chain.failed_format = null;
    chain.layers.append(layer) catch unreachable;
}

fn last(chain: *const Chain) *const Layer {
    return &chain.layers.constSlice()[chain.layers.count - 1];
}

/// Takes the first of the parent's names that exists.
fn openParent(link: *const ParentLink, directory: *const Directory) Fault!ImageSource {
    if (link.names.count == 0) return error.ParentUnnamed;
    for (link.names.constSlice()) |*name| {
        return directory.open(directory.context, name.constSlice()) catch |err| switch (err) {
            error.ParentMissing => continue,
            error.ParentUnreadable => return error.ParentUnreadable,
        };
    }
    return error.ParentMissing;
}

fn hasFile(chain: *const Chain, file: ImageSource) bool {
    const stamp = (file.now() orelse return false).stamp;
    for (chain.layers.constSlice()) |*layer| {
        const other = (layer.file.source.now() orelse continue).stamp;
        if (stamp.kind == other.kind and stamp.device == other.device and
            stamp.inode == other.inode) return true;
    }
    return false;
}

pub fn isRaw(chain: *const Chain) bool {
    return chain.layers.constSlice()[0].container == .raw;
}

/// Bytes of the disk.
pub fn size(chain: *const Chain) u64 {
    return chain.layers.constSlice()[0].size;
}

/// Fills `buffer` from byte `offset` of the disk, completely or not at all.
pub fn read(chain: *Chain, buffer: []u8, offset: u64) Fault!void {
    var done: usize = 0;
    while (done < buffer.len)
        done += try chain.readPart(buffer[done..], offset + done);
}

fn readPart(chain: *Chain, buffer: []u8, offset: u64) Fault!usize {
    var at_layer: usize = 0;
    return chain.readLayers(buffer, offset, &at_layer) catch |fault| {
        const code: u32 = @intFromError(fault);
        chain.read_fault.store(@as(u32, @intCast(at_layer)) << 16 | code, .monotonic);
        return fault;
    };
}

/// Reads the bytes that one file has; returns their number.
fn readLayers(chain: *Chain, buffer: []u8, offset: u64, at_layer: *usize) Fault!usize {
    var count: usize = buffer.len;
    for (chain.layers.constSlice(), 0..) |*layer, index| {
        at_layer.* = index;
        // A parent may be smaller: behind its end are zeros.
        if (offset >= layer.size) break;
        count = @intCast(@min(count, layer.size - offset));
        const extent = try layer.extentAt(offset, count);
        count = @intCast(@min(count, extent.size));
        const part = buffer[0..count];
        switch (extent.content) {
            .parent => continue,
            .zeros => break,
            .file => |location| try layer.readFile(part, location),
            .compressed => |*what| try chain.unpacker.read(&layer.file, index, what, part),
        }
        return count;
    }
    @memset(buffer[0..count], 0);
    return count;
}

/// Returns the first byte at or after `offset` that may be nonzero, or null. One thread at a time
/// calls it.
pub fn nextData(chain: *Chain, offset: u64) ?u64 {
    var nearest = chain.size();
    for (chain.layers.slice()) |*layer| {
        const found = layer.nextData(offset);
        if (found < layer.size) nearest = @min(nearest, found);
    }
    return if (nearest < chain.size()) nearest else null;
}

/// The disk as a source of an import. A raw file is its own source: that it has become shorter is
/// no fault of a format.
pub fn source(chain: *Chain) ImageSource {
    if (chain.isRaw()) return chain.layers.constSlice()[0].file.source;
    return .{
        .context = chain,
        .vtable = &.{ .read = readSource, .nextData = nextSource, .now = now },
        .size = chain.size(),
        .is_positional = true,
    };
}

/// The disk for readers of its file systems. Its end that is no whole sector is left out.
pub fn blockSource(chain: *Chain) BlockSource {
    return .{
        .context = chain,
        .vtable = &.{ .read = readBlocks },
        .size = std.mem.alignBackward(u64, chain.size(), 512),
    };
}

fn of(context: *anyopaque) *Chain {
    return @ptrCast(@alignCast(context));
}

fn readSource(
    context: *anyopaque,
    buffer: []u8,
    offset: u64,
    failed_at: *u64,
) store.image_source.ReadError!usize {
    const chain = of(context);
    const count: usize = @intCast(@min(buffer.len, chain.size() -| offset));
    chain.read(buffer[0..count], offset) catch |fault| {
        failed_at.* = offset;
        return if (fault == error.Canceled) error.Canceled else error.ReadFailed;
    };
    return count;
}

fn readBlocks(context: *anyopaque, buffer: []u8, offset: u64) BlockSource.ReadError!void {
    const chain = of(context);
    chain.read(buffer, offset) catch return error.ReadFailed;
}

fn nextSource(context: *anyopaque, offset: u64) ?u64 {
    return of(context).nextData(offset);
}

/// Changes with each of the files.
fn now(context: *anyopaque) ?ImageSource.Now {
    const chain = of(context);
    const layers = chain.layers.constSlice();
    const first = layers[0].file.source.now() orelse return null;
    var stamp = first.stamp;
    var hash: std.hash.Wyhash = .init(0);
    for (layers) |*layer| {
        const current = layer.file.source.now() orelse return null;
        if (!current.stamp.isProof()) stamp.kind = current.stamp.kind;
        for ([_]u64{
            @backingInt(current.stamp.kind),
            current.stamp.device,
            current.stamp.inode,
            current.stamp.modified_ns,
            current.size orelse 0,
        }) |number| hash.update(std.mem.asBytes(&std.mem.nativeToLittle(u64, number)));
    }
    stamp.modified_ns = hash.final();
    return .{ .stamp = stamp, .size = chain.size() };
}

pub const ReadFault = struct { fault: Fault, layer: usize };

/// The last fault of a read.
pub fn faultOfRead(chain: *const Chain) ?ReadFault {
    const found = chain.read_fault.load(.monotonic);
    if (found == 0) return null;
    const code: u16 = @truncate(found);
    return .{ .fault = @errorCast(@errorFromInt(code)), .layer = found >> 16 };
}
