//! A difference as the source of `vdisk import`: recognized by its content. It says itself what the
//! version is, so that options may only repeat it.

const std = @import("std");
const base = @import("base");
const core = @import("core");
const store_module = @import("store");
const cancel = @import("../cancel.zig");
const Call = @import("../subcommand.zig");
const SourceImage = @import("../../source_image.zig");
const Uuid = base.Uuid;

const Checkpoint = store_module.import_checkpoint.Checkpoint;
const Difference = store_module.Difference;
const FdSource = store_module.image_source.FdSource;
const StoreFile = store_module.StoreFile;

/// Must not move once it is open.
pub const OpenDifference = @This();

path: []const u8,
file: FdSource,
difference: Difference,

/// Returns false if the file is something else, or cannot be read.
pub fn open(
    opened: *OpenDifference,
    call: *const Call,
    path: []const u8,
    in_store: bool,
) Call.Error!bool {
    if (std.mem.eql(u8, path, "-")) return false;
    opened.path = path;
    opened.file = openFile(call, path, in_store) orelse return false;
    errdefer opened.file.close();
    const file = opened.file.source();
    var head: [store_module.difference_format.magic.len]u8 = undefined;
    var failed_at: u64 = 0;
    const count = if (file.is_positional) file.read(&head, 0, &failed_at) catch 0 else 0;
    if (!store_module.difference.isOne(head[0..count])) {
        opened.file.close();
        return false;
    }
    if (opened.file.kind != .file) return call.fail(
        "{s} is a difference of versions on a device; copy it to a file first.",
        .{path},
    );
    opened.difference = Difference.open(call.gpa, file) catch |err| switch (err) {
        error.OutOfMemory => return error.OutOfMemory,
        else => |fault| return call.fail("{s} {s}.", .{
            path, store_module.difference_format.sentence(fault),
        }),
    };
    return true;
}

fn openFile(call: *const Call, path: []const u8, in_store: bool) ?FdSource {
    if (!in_store) return FdSource.open(path, &cancel.is_asked) catch null;
    if (SourceImage.isOwn(path)) return null;
    const file = StoreFile.openBelow(call.opened.on.dir_fd, path, .image) catch return null;
    return FdSource.fromFd(file.fd, &cancel.is_asked) catch null;
}

pub fn close(opened: *OpenDifference, gpa: std.mem.Allocator) void {
    opened.difference.close(gpa);
    opened.file.close();
    opened.* = undefined;
}

/// Checks that the options say nothing else than the difference.
///
/// @param options those of `vdisk import`
pub fn checkOptions(
    opened: *const OpenDifference,
    call: *const Call,
    options: anytype,
) Call.Error!void {
    const header = &opened.difference.header;
    if (options.boot.isChosen() or options.boot.busybox != null or options.boot.target != null)
        return opened.failOption(call, "Options for the kernel, initramfs and command line do");
    if (options.source.isChosen()) return opened.failOption(
        call,
        "--format, --parents, --size and --platform do",
    );
    if (options.pad) return opened.failOption(call, "--pad does");
    inline for (.{ "version", "vdisk", "parent" }) |name| if (@field(options, name)) |given| {
        const own = @field(header, name);
        if (!given.eql(own)) return call.fail(
            "--" ++ name ++ " {f} contradicts the difference {s}, which has {f}.",
            .{ given, opened.path, own },
        );
    };
    if (options.number) |given| if (given != header.number) return call.fail(
        "--number {d} contradicts the difference {s}, which has {d}.",
        .{ given, opened.path, header.number },
    );
    inline for (.{ "name", "note" }) |name| if (@field(options, name)) |given| {
        const own = @field(header, name).constSlice();
        if (!std.mem.eql(u8, given, own)) return call.fail(
            "--" ++ name ++ " '{s}' contradicts the difference {s}, which has '{s}'.",
            .{ given, opened.path, own },
        );
    };
    return checkRoot(call, options.root, &header.root);
}

fn failOption(
    opened: *const OpenDifference,
    call: *const Call,
    comptime what: []const u8,
) Call.Error {
    return call.fail(
        what ++ " not go with {s}, a difference of versions: it says what the version is.",
        .{opened.path},
    );
}

/// Checks the root of what is imported, or was, against the one that is demanded.
pub fn checkRoot(
    call: *const Call,
    demanded: ?[]const u8,
    root: *const store_module.block.Hash,
) Call.Error!void {
    const text = demanded orelse return;
    var expected: store_module.block.Hash = undefined;
    const is_read = if (text.len != 2 * expected.len)
        false
    else if (std.fmt.hexToBytes(&expected, text)) |_| true else |_| false;
    if (!is_read) return call.fail("--root has 64 hexadecimal digits, unlike '{s}'.", .{text});
    if (!std.mem.eql(u8, &expected, root)) return call.fail(
        "The version has the root {x}, not the demanded {s}: it has other bytes.",
        .{ root, text },
    );
}

/// Checks that the store is one that the difference is for.
pub fn checkBase(opened: *const OpenDifference, call: *const Call) Call.Error!void {
    const header = &opened.difference.header;
    const own = call.store().organization;
    if (!own.eql(.zero) and !header.organization.eql(.zero) and !own.eql(header.organization))
        return call.fail(
            "{s} is of the organization {f}, and the store {s} belongs to {f}.",
            .{ opened.path, header.organization, call.path(), own },
        );
    if (!core.boot.assignment.isCommandLine(header.command_line.constSlice()))
        return call.fail("{s} has a command line that no version can have.", .{opened.path});
    if (header.base.eql(.zero)) return;
    const found = call.store().manifestOf(header.base) catch |err|
        return if (err == error.NotFound)
            opened.failBaseMissing(call)
        else
            call.failVersion(header.base, err);
    if (!std.mem.eql(u8, &found.root.hash, &header.base_root)) return opened.failOtherBase(call);
    if (found.disk_size != header.disk_size) return call.fail(
        "{s} is for a disk of {d} bytes, and its base {f} has {d}; pack it again.",
        .{ opened.path, header.disk_size, header.base, found.disk_size },
    );
}

fn failBaseMissing(opened: *const OpenDifference, call: *const Call) Call.Error {
    return call.fail(
        "{s} is the difference to the version {f}, which is not in the store {s}: take that version first, or pack this one without --base.",
        .{ opened.path, opened.difference.header.base, call.path() },
    );
}

fn failOtherBase(opened: *const OpenDifference, call: *const Call) Call.Error {
    return call.fail(
        "{s} is the difference to a version {f} of other bytes than the one in the store {s}: pack it again, without --base.",
        .{ opened.path, opened.difference.header.base, call.path() },
    );
}

/// What the header says of the version.
pub fn wanted(opened: *const OpenDifference, call: *const Call) Call.Error!Checkpoint {
    var checkpoint = opened.difference.checkpoint();
    checkpoint.path = @TypeOf(checkpoint.path).fromSlice(opened.path) catch
        return call.fail("The path of the difference is too long.", .{});
    return checkpoint;
}

/// Copies kernel and initramfs into the store, whose lock is held.
pub fn takeBootFiles(opened: *OpenDifference, call: *const Call) Call.Error!void {
    opened.difference.takeBootFiles(call.files(), &cancel.is_asked) catch |err| {
        if (opened.explainRead(call)) |explained| return explained;
        return switch (err) {
            error.Canceled => call.fail(
                "The import was interrupted while the kernel was copied; nothing was kept.",
                .{},
            ),
            error.WrongBootFile => call.fail(
                "{s} has a kernel or an initramfs of another hash than it names; pack it again.",
                .{opened.path},
            ),
            error.BootFileMissing => call.fail(
                "The kernel or initramfs that {s} shares with its base {f} is missing from the store {s}, or damaged: pack it without --base.",
                .{ opened.path, opened.difference.header.base, call.path() },
            ),
            error.NotADifference,
            error.TooNew,
            error.Damaged,
            error.Malformed,
            error.Truncated,
            error.ReadFailed,
            => unreachable,
            else => |other| call.failStore(other),
        };
    };
}

/// Explains why a read has failed; null if it did not.
pub fn explainRead(opened: *const OpenDifference, call: *const Call) ?Call.Error {
    const fault = opened.difference.fault orelse return null;
    return call.fail("{s} {s} (byte {d}).", .{
        opened.path,
        store_module.difference_format.sentence(fault),
        opened.difference.failed_at,
    });
}

/// Explains what only an import of a difference can meet.
pub fn explain(
    opened: *const OpenDifference,
    call: *const Call,
    problem: store_module.import.Error,
) ?Call.Error {
    return switch (problem) {
        error.ParentMissing => opened.failBaseMissing(call),
        error.OtherBase => opened.failOtherBase(call),
        error.OtherRoot => call.fail(
            "{s} does not give the version that it names: the root of its blocks is another. Nothing was made of it; pack it again.",
            .{opened.path},
        ),
        error.SourceChanged => call.fail(
            "{s} has changed since the import started; abandon the import with --abandon {f}, and import the difference again.",
            .{ opened.path, opened.difference.header.version },
        ),
        else => null,
    };
}
