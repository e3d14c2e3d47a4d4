//! An image of containers as the image of an import: an archive of `docker save` or `podman save`,
//! or an OCI layout, as a file or a directory. It becomes a disk in a file without a name in the
//! store's directory, which ends with the process.

const std = @import("std");
const base = @import("base");
const image = @import("image");
const store_module = @import("store");
const cancel = @import("../cancel.zig");
const Call = @import("../subcommand.zig");
const SourceImage = @import("../../source_image.zig");
const unnamed_file = @import("unnamed_file.zig");
const linux = std.os.linux;
const oci = image.oci;

const FdSource = store_module.image_source.FdSource;
const ImageSource = store_module.image_source.ImageSource;
const StoreFile = store_module.StoreFile;

const path_size_max = 1024;

/// An archive or a directory that is open. Must not move.
pub const ContainerImage = @This();

call: *const Call,
path: []const u8,
arena: std.heap.ArenaAllocator,
/// The archive; empty for a directory.
file: ?FdSource,
/// The directory that all files of a layout are below, and their path there.
directory: struct { fd: i32, prefix: []const u8, is_own: bool } = undefined,
/// Files of a layout.
files: std.ArrayList(*FdSource),
archive: oci.Archive,

/// Returns false if the path is something else.
pub fn open(
    container: *ContainerImage,
    call: *const Call,
    path: []const u8,
    in_store: bool,
) Call.Error!bool {
    container.* = .{
        .call = call,
        .path = path,
        .arena = .init(call.gpa),
        .file = null,
        .files = .empty,
        .archive = undefined,
    };
    if (path.len == 0 or path.len > path_size_max or std.mem.eql(u8, path, "-")) return false;
    if (in_store and SourceImage.isOwn(path)) return false;
    const is_open = if (try container.openDirectory(path, in_store)) true else blk: {
        container.file = openFile(call, path, in_store) orelse break :blk false;
        break :blk try container.openArchive();
    };
    if (!is_open) container.close();
    return is_open;
}

pub fn close(container: *ContainerImage) void {
    if (container.file) |*file| file.close() else if (container.archive.place == .directory and
        container.directory.is_own) _ = linux.close(container.directory.fd);
    for (container.files.items) |file| file.close();
    container.arena.deinit();
    container.* = undefined;
}

fn openFile(call: *const Call, path: []const u8, in_store: bool) ?FdSource {
    if (!in_store) return FdSource.open(path, &cancel.is_asked) catch null;
    const file = StoreFile.openBelow(call.opened.on.dir_fd, path, .image) catch return null;
    return FdSource.fromFd(file.fd, &cancel.is_asked) catch null;
}

/// A tar archive that has the lists of a container image; others are left to the reader of disks,
/// which refuses them.
fn openArchive(container: *ContainerImage) Call.Error!bool {
    container.archive = .{ .arena = undefined, .place = .{ .file = undefined } };
    const source = container.file.?.source();
    if (!source.is_positional) return false;
    var head: [512]u8 = undefined;
    var failed_at: u64 = 0;
    const count = source.read(&head, 0, &failed_at) catch return false;
    if (!oci.Archive.isTar(head[0..count])) return false;
    container.archive = oci.Archive.openFile(container.arena.allocator(), source) catch |fault|
        return container.explain(fault, &.{});
    return container.archive.hasList();
}

fn openDirectory(container: *ContainerImage, path: []const u8, in_store: bool) Call.Error!bool {
    container.archive = .{ .arena = undefined, .place = .{ .file = undefined } };
    if (in_store) {
        // The store's own directory is open as long as the store.
        container.directory =
            .{ .fd = container.call.opened.on.dir_fd, .prefix = path, .is_own = false };
    } else {
        var path_z: [path_size_max:0]u8 = @splat(0);
        @memcpy(path_z[0..path.len], path);
        const flags: linux.O = .{ .CLOEXEC = true, .DIRECTORY = true };
        const rc = linux.openat(linux.AT.FDCWD, &path_z, flags, 0);
        if (linux.errno(rc) != .SUCCESS) return false;
        container.directory = .{ .fd = @intCast(rc), .prefix = "", .is_own = true };
    }
    container.archive = oci.Archive.openDirectory(
        container.arena.allocator(),
        .{ .context = container, .openFn = openMember },
    );
    if (container.archive.hasList()) return true;
    if (in_store) return false;
    return container.call.fail(
        "{s} is a directory without an index.json (OCI layout) or a manifest.json (docker save).",
        .{path},
    );
}

fn openMember(context: *anyopaque, name: []const u8) error{ReadFailed}!?ImageSource {
    const container: *ContainerImage = @ptrCast(@alignCast(context));
    const directory = &container.directory;
    const arena = container.arena.allocator();
    const path = if (directory.prefix.len == 0)
        name
    else
        std.mem.concat(arena, u8, &.{ directory.prefix, "/", name }) catch
            return error.ReadFailed;
    const file = StoreFile.openBelow(directory.fd, path, .plain) catch |err| return switch (err) {
        error.Missing, error.PathEscapes, error.NotAFile => null,
        else => error.ReadFailed,
    };
    const kept = arena.create(FdSource) catch return error.ReadFailed;
    kept.* = FdSource.fromFd(file.fd, &cancel.is_asked) catch return error.ReadFailed;
    container.files.append(arena, kept) catch return error.ReadFailed;
    return kept.source();
}

/// What the disk is to be.
pub const Wanted = struct {
    options: *const SourceImage.Options,
    needs: oci.machine.Needs,
    /// Bytes, if the options do not say.
    size: ?u64,
};

/// Makes the disk. The caller owns the file.
pub fn convert(
    container: *ContainerImage,
    how: *const Wanted,
) Call.Error!FdSource {
    const options = how.options;
    const arena = container.arena.allocator();
    const conversion = try arena.create(oci.Conversion);
    conversion.prepare(arena, &container.archive, .{
        .size = if (options.size) |text| try parseSize(container.call, text) else how.size,
        .platform = options.platform,
        .needs = how.needs,
        .is_canceled = &cancel.is_asked,
    }) catch |fault| return container.explain(fault, &conversion.subject);
    const fd = try unnamed_file.make(container.call, conversion.plan.size, container.path);
    errdefer _ = linux.close(fd);
    var on: i32 = fd;
    conversion.write(.{ .context = &on, .writeFn = write }) catch |fault|
        return container.explain(fault, &conversion.subject);
    var made = FdSource.fromFd(fd, &cancel.is_asked) catch
        return container.explain(error.WriteFailed, &.{});
    // The file is a new one each time; what is in it is not.
    const identity = conversion.identity();
    made.content_stamp = .{
        .kind = .file,
        .device = std.mem.readInt(u64, identity[0..8], .little),
        .inode = std.mem.readInt(u64, identity[8..16], .little),
        .modified_ns = std.mem.readInt(u64, identity[16..24], .little),
    };
    return made;
}

fn write(context: *anyopaque, bytes: []const u8, offset: u64) oci.Sink.Error!void {
    const fd: *const i32 = @ptrCast(@alignCast(context));
    var done: usize = 0;
    while (done < bytes.len) {
        const rest = bytes[done..];
        const rc = linux.pwrite(fd.*, rest.ptr, rest.len, @intCast(offset + done));
        switch (linux.errno(rc)) {
            .SUCCESS => if (rc == 0) return error.WriteFailed else {
                done += rc;
            },
            .INTR => {},
            else => return error.WriteFailed,
        }
    }
}

/// Bytes, or a number with K, M, G or T; a multiple of 1 MiB.
fn parseSize(call: *const Call, text: []const u8) Call.Error!u64 {
    const units = "KMGT";
    const last = if (text.len > 0) text[text.len - 1] else 0;
    const unit = std.mem.findScalar(u8, units, std.ascii.toUpper(last));
    const digits = if (unit == null) text else text[0 .. text.len - 1];
    const shift: u6 = if (unit) |index| @intCast(10 * (index + 1)) else 0;
    const number = std.fmt.parseInt(u64, digits, 10) catch 0;
    const size = std.math.mul(u64, number, @as(u64, 1) << shift) catch 0;
    if (size >= oci.Layout.size_min and size <= oci.Layout.size_max and size % (1 << 20) == 0)
        return size;
    return call.fail(
        "--size is a number of MiB or GiB such as 512M or 16G, from 64M to 2T, not '{s}'.",
        .{text},
    );
}

fn explain(
    container: *ContainerImage,
    fault: oci.Fault,
    subject: *const oci.fault.Subject,
) Call.Error {
    const call = container.call;
    if (fault == error.OutOfMemory) return error.OutOfMemory;
    if (fault == error.Canceled)
        return call.fail("The import was interrupted while {s} was unpacked; nothing was kept.", .{
            container.path,
        });
    var buffer: [300]u8 = undefined;
    var writer: std.Io.Writer = .fixed(&buffer);
    if (subject.layer > 0) writer.print("layer {d}", .{subject.layer}) catch {};
    if (subject.layer > 0 and subject.text.count > 0) writer.writeAll(", ") catch {};
    writer.writeAll(subject.text.constSlice()) catch {};
    const about = writer.buffered();
    return call.fail("{s} {s}{s}{s}{s}.", .{
        container.path,                  oci.fault.sentence(fault),
        if (about.len > 0) " (" else "", about,
        if (about.len > 0) ")" else "",
    });
}
