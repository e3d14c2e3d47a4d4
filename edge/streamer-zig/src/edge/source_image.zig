//! The disk image that a command is given: a file, a block device or a stream, of any format that
//! is read. The parents of a difference are opened from one directory: that of the image, or the
//! one of `--parents`.

const std = @import("std");
const base = @import("base");
const image = @import("image");
const store = @import("store");
const Complaint = @import("complaint.zig");
const container = image.container;
const Chain = container.Chain;
const FdSource = store.image_source.FdSource;
const Format = container.Format;
const ImageSource = store.image_source.ImageSource;
const StoreFile = store.StoreFile;

pub const Options = struct {
    format: ?[]const u8 = null,
    parents: ?[]const u8 = null,
    /// Of the disk that is made of a container image.
    size: ?[]const u8 = null,
    platform: ?[]const u8 = null,
    /// In place of an image: the size of a disk of zeros.
    empty: ?[]const u8 = null,

    pub fn isChosen(options: *const Options) bool {
        return options.format != null or options.parents != null or options.size != null or
            options.platform != null or options.empty != null;
    }
};

/// Where the image is, for its parents and for messages.
pub const Place = struct {
    /// As it was given; `-` is a stream.
    path: []const u8,
    /// All paths are below this directory.
    below: ?i32 = null,
    /// Checked while a stream has no bytes.
    is_canceled: *const std.atomic.Value(bool),
};

const Name = base.BoundedArray(u8, 255);

/// Must not move once it is open.
pub const SourceImage = @This();

place: Place,
parents: ?[]const u8,
complaint: *Complaint,
/// The image, then its parents.
files: base.BoundedArray(FdSource, container.layers_max + 1),
names: base.BoundedArray(Name, container.layers_max + 1),
/// Undefined for a stream.
chain: Chain,
is_stream: bool,
guard: container.StreamGuard,

/// Takes ownership of `file`. `gpa` must be safe for several threads.
pub fn open(
    opened: *SourceImage,
    gpa: std.mem.Allocator,
    file: FdSource,
    place: Place,
    options: *const Options,
    complaint: *Complaint,
) Complaint.Error!void {
    opened.* = .{
        .place = place,
        .parents = options.parents,
        .complaint = complaint,
        .files = .empty,
        .names = .empty,
        .chain = undefined,
        .is_stream = false,
        .guard = undefined,
    };
    opened.files.appendAssumeCapacity(file);
    opened.names.appendAssumeCapacity(.empty);
    errdefer opened.closeFiles();
    const format = try parseFormat(options.format, complaint);
    const first = opened.files.slice()[0].source();
    if (!first.is_positional) {
        opened.is_stream = true;
        opened.guard = .{ .stream = first };
        if (format == null or format == .raw) return;
        return complaint.set(
            "Standard input is read once, so it can only be raw: name a file in place of it.",
            .{},
        );
    }
    const chain = &opened.chain;
    chain.open(gpa, first, &.{
        .format = format,
        .directory = .{ .context = opened, .open = openParent },
    }) catch |fault| return opened.explain(&.{
        .fault = fault,
        .layer = chain.failed_layer,
        .format = chain.failed_format,
    });
}

fn parseFormat(text: ?[]const u8, complaint: *Complaint) Complaint.Error!?Format {
    const name = text orelse return null;
    const format = std.meta.stringToEnum(Format, name);
    if (format) |known| if (known.isReadable()) return known;
    return complaint.set("--format is raw, vhd, vhdx, qcow2 or vmdk, not '{s}'.", .{name});
}

pub fn close(opened: *SourceImage) void {
    if (!opened.is_stream) opened.chain.close();
    opened.closeFiles();
}

fn closeFiles(opened: *SourceImage) void {
    for (opened.files.slice()) |*file| file.close();
    opened.files = .empty;
}

/// The disk, for the importer.
pub fn source(opened: *SourceImage, options: *const Options) ImageSource {
    if (!opened.is_stream) return opened.chain.source();
    const is_raw = options.format != null;
    return if (is_raw) opened.files.slice()[0].source() else opened.guard.source();
}

/// The disk, for readers of file systems; null for a stream.
pub fn blockSource(opened: *SourceImage) ?store.BlockSource {
    return if (opened.is_stream) null else opened.chain.blockSource();
}

/// The name of the file that the image is a difference to; null for a whole disk.
pub fn parentName(opened: *const SourceImage) ?[]const u8 {
    const names = opened.names.constSlice();
    return if (names.len > 1) names[1].constSlice() else null;
}

/// Explains why a read of the image has failed, if its format is the reason.
pub fn explainRead(opened: *SourceImage) ?Complaint.Error {
    if (!opened.is_stream) {
        const found = opened.chain.faultOfRead() orelse return null;
        if (found.fault == error.ReadFailed or opened.chain.isRaw()) return null;
        return opened.explain(&.{ .fault = found.fault, .layer = found.layer, .format = null });
    }
    const format = opened.guard.found orelse return null;
    return opened.explain(&.{ .fault = error.NotReadable, .layer = 0, .format = format });
}

const Failed = struct { fault: container.Fault, layer: usize, format: ?Format };

fn explain(opened: *SourceImage, failed: *const Failed) Complaint.Error {
    const complaint = opened.complaint;
    const path = opened.place.path;
    const is_stream = std.mem.eql(u8, path, "-");
    const name: []const u8 = if (failed.layer > 0)
        opened.names.constSlice()[failed.layer].constSlice()
    else if (is_stream) "Standard input" else path;
    const what = if (failed.layer > 0) "The parent " else "";
    const format = failed.format orelse
        return complaint.set("{s}{s} {s}.", .{
            what, name, container.fault.sentence(failed.fault),
        });
    if (failed.fault == error.OtherFormat)
        return complaint.set("{s} is {s}, not one of --format.", .{ name, format.name() });
    if (failed.fault != error.NotReadable) return complaint.set("{s}{s}, {s}, {s}.", .{
        what, name, format.name(), container.fault.sentence(failed.fault),
    });
    const remedy = if (is_stream and format.isReadable())
        "Name the file in place of standard input."
    else
        format.remedy();
    return complaint.set(
        "{s}{s} is {s}. {s} (--format raw is for a raw disk that only looks like one.)",
        .{ what, name, format.name(), remedy },
    );
}

fn openParent(
    context: *anyopaque,
    name: []const u8,
) error{ ParentMissing, ParentUnreadable }!ImageSource {
    const opened: *SourceImage = @ptrCast(@alignCast(context));
    var buffer: [store.image_source.path_size_max]u8 = undefined;
    const directory = opened.parents orelse std.fs.path.dirname(opened.place.path);
    const path = if (directory) |dir|
        std.mem.print(&buffer, "{s}/{s}", .{ dir, name }) catch return error.ParentMissing
    else
        name;
    const file = try opened.openFile(path);
    opened.files.appendAssumeCapacity(file);
    opened.names.appendAssumeCapacity(Name.fromSlice(name) catch unreachable);
    const files = opened.files.slice();
    const found = files[files.len - 1].source();
    return if (found.is_positional) found else error.ParentUnreadable;
}

fn openFile(
    opened: *SourceImage,
    path: []const u8,
) error{ ParentMissing, ParentUnreadable }!FdSource {
    const is_canceled = opened.place.is_canceled;
    const dir_fd = opened.place.below orelse
        return FdSource.open(path, is_canceled) catch |err| switch (err) {
            error.Missing, error.TooLong => error.ParentMissing,
            else => error.ParentUnreadable,
        };
    // A difference names its parent: it must not name the store's keys.
    if (isOwn(path)) return error.ParentUnreadable;
    const file = StoreFile.openBelow(dir_fd, path, .image) catch |err| return switch (err) {
        error.Missing, error.PathEscapes => error.ParentMissing,
        else => error.ParentUnreadable,
    };
    return FdSource.fromFd(file.fd, is_canceled) catch error.ParentUnreadable;
}

/// Recognizes a file that is to be served as it is; null for a raw disk.
pub fn containerOf(file: *const StoreFile) ?Format {
    var part: [container.signature.head_size]u8 = undefined;
    const size: usize = @intCast(@min(part.len, file.size));
    file.read(part[0..size], 0) catch return null;
    if (container.signature.ofHead(part[0..size])) |format| return format;
    file.read(part[0..size], file.size - size) catch return null;
    return container.signature.ofTail(part[0..size]);
}

/// Returns whether a path below a store is one of the store's own files.
pub fn isOwn(path: []const u8) bool {
    var parts = std.mem.splitScalar(u8, path, '/');
    const first = parts.first();
    return store.store_dir.isOwn(first) and !std.mem.eql(u8, first, "imports");
}
