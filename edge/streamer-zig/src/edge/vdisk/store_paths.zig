//! Opens the files that a command is given: by a path of this machine, or, as the control plane
//! gives them, below the store's directory. Such a path cannot lead out of that directory, and the
//! store's own files cannot serve as image, kernel or initramfs.

const std = @import("std");
const store_module = @import("store");
const cancel = @import("cancel.zig");
const ContainerImage = @import("source/container_image.zig");
const image = @import("image");
const Call = @import("subcommand.zig");
const empty_disk = @import("source/empty_disk.zig");
const SourceImage = @import("../source_image.zig");

const FdSource = store_module.image_source.FdSource;
const StoreFile = store_module.StoreFile;

pub fn openPlain(call: *const Call, path: []const u8, in_store: bool) Call.Error!StoreFile {
    if (in_store) try checkOwn(call, path);
    const opened = if (in_store)
        StoreFile.openBelow(call.opened.on.dir_fd, path, .plain)
    else
        StoreFile.open(path, .plain);
    return opened catch |err|
        call.fail("{s} {s}.", .{ path, store_module.store_file.sentence(err, .plain) });
}

/// How an image that may be a container image is opened.
pub const Opening = struct {
    path: []const u8,
    in_store: bool,
    options: *const SourceImage.Options,
    /// What a container image must have.
    needs: image.oci.machine.Needs = .{ .kernel = false },
    /// Bytes of the disk that an import of a container image began with.
    size: ?u64 = null,
    /// Called before a container image is unpacked, which takes a while.
    before_unpacking: struct { context: *anyopaque, run: *const fn (*anyopaque) void },
};

/// Opens an image of any format, or makes a disk of a container image, or an empty one.
pub fn openAny(call: *const Call, opened: *SourceImage, how: *const Opening) Call.Error!void {
    if (how.options.empty) |size| return empty_disk.open(call, opened, size);
    var container: ContainerImage = undefined;
    const is_forced = how.options.format != null;
    if (is_forced or !try container.open(call, how.path, how.in_store))
        return openSource(call, opened, how.path, how.in_store, how.options);
    defer container.close();
    how.before_unpacking.run(how.before_unpacking.context);
    const file = try container.convert(&.{
        .options = how.options,
        .needs = how.needs,
        .size = how.size,
    });
    return opened.open(
        call.gpa,
        file,
        .{ .path = how.path, .is_canceled = &cancel.is_asked },
        &.{ .format = "raw" },
        call.complaint,
    );
}

/// Opens an image of any format, as the disk that it holds.
pub fn openSource(
    call: *const Call,
    opened: *SourceImage,
    path: []const u8,
    in_store: bool,
    options: *const SourceImage.Options,
) Call.Error!void {
    if (options.size != null or options.platform != null) return call.fail(
        "--size and --platform are for container images, and {s} is none.",
        .{path},
    );
    const file = try openImage(call, path, in_store, &cancel.is_asked);
    return opened.open(call.gpa, file, .{
        .path = path,
        .below = if (in_store) call.opened.on.dir_fd else null,
        .is_canceled = &cancel.is_asked,
    }, options, call.complaint);
}

/// `-` is standard input, except for a path in the store.
fn openImage(
    call: *const Call,
    path: []const u8,
    in_store: bool,
    is_canceled: *const std.atomic.Value(bool),
) Call.Error!FdSource {
    if (in_store) {
        try checkOwn(call, path);
        const file = StoreFile.openBelow(call.opened.on.dir_fd, path, .image) catch |err|
            return call.fail("{s} {s}.", .{ path, store_module.store_file.sentence(err, .image) });
        return FdSource.fromFd(file.fd, is_canceled) catch |err|
            return call.fail("{s} {s}.", .{ path, store_module.image_source.sentence(err) });
    }
    const is_stream = std.mem.eql(u8, path, "-");
    const opened =
        if (is_stream) FdSource.fromFd(0, is_canceled) else FdSource.open(path, is_canceled);
    return opened catch |err| call.fail("{s} {s}.", .{
        if (is_stream) "Standard input" else path, store_module.image_source.sentence(err),
    });
}

fn checkOwn(call: *const Call, path: []const u8) Call.Error!void {
    if (SourceImage.isOwn(path)) return call.fail(
        "{s} is one of the store's own files; put the file into imports/ or another directory below {s}.",
        .{ path, call.path() },
    );
}
