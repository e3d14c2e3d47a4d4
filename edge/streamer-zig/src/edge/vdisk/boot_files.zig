//! The kernel and initramfs that a version is to boot with: looked at as `serve` does, and copied into the store.

const std = @import("std");
const core = @import("core");
const host = @import("host");
const store_module = @import("store");
const command = @import("command.zig");

const Checkpoint = store_module.import_checkpoint.Checkpoint;
const Complaint = @import("../options.zig").Complaint;
const StoreFile = store_module.StoreFile;

pub const Wanted = struct {
    kernel: []const u8,
    initrd: ?[]const u8,
    /// Passed `boot_policy.isCommandLine`.
    command_line: []const u8,
};

pub fn take(files: store_module.Files, wanted: Wanted, into: *Checkpoint, complaint: *Complaint) command.Error!void {
    var kernel = try open(wanted.kernel, complaint);
    defer kernel.close();
    var initrd = if (wanted.initrd) |path| try open(path, complaint) else null;
    defer if (initrd) |*file| file.close();
    const found = host.loader_files.inspect(&kernel, if (initrd) |*file| file else null) catch |err|
        return complaint.set("{s} {s}.", .{ wanted.kernel, host.loader_files.sentence(err) });
    if (core.kernel_fit.judge(&found, null)) |misfit| return complaint.set(
        "{s} does not belong to {s}: {s}; make it anew by bootfarm-edge initramfs build.",
        .{ wanted.initrd.?, wanted.kernel, misfit.text.slice() },
    );
    into.kernel = try copy(files, &kernel, wanted.kernel, complaint);
    into.initrd = if (initrd) |*file| try copy(files, file, wanted.initrd.?, complaint) else null;
    into.command_line = @FieldType(Checkpoint, "command_line").fromSlice(wanted.command_line) catch unreachable;
}

fn open(path: []const u8, complaint: *Complaint) command.Error!StoreFile {
    return StoreFile.open(path, .plain) catch |err|
        complaint.set("{s} {s}.", .{ path, store_module.store_file.sentence(err, .plain) });
}

fn copy(
    files: store_module.Files,
    file: *StoreFile,
    path: []const u8,
    complaint: *Complaint,
) command.Error!store_module.manifest.BootFile {
    return store_module.boot_bundle.take(files, .{ .context = file, .read = read }) catch |err| switch (err) {
        error.SourceFailed => complaint.set("{s} cannot be read: it changes, or the system reports an error.", .{path}),
        error.TooLarge => complaint.set("{s} is larger than any kernel or initramfs.", .{path}),
        error.Empty => complaint.set("{s} is empty.", .{path}),
        else => |other| complaint.set("{s} cannot be copied: the store {s}.", .{ path, store_module.files.sentence(other) }),
    };
}

fn read(context: *anyopaque, buffer: []u8, offset: u64) error{SourceFailed}!usize {
    const file: *const StoreFile = @ptrCast(@alignCast(context));
    const count: usize = @intCast(@min(buffer.len, file.size - offset));
    file.read(buffer[0..count], offset) catch return error.SourceFailed;
    return count;
}
