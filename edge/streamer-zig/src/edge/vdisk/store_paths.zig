//! Opens the files that a command is given: by a path of this machine, or, as the control plane
//! gives them, below the store's directory. Such a path cannot lead out of that directory, and the
//! store's own files cannot serve as image, kernel or initramfs.

const std = @import("std");
const store_module = @import("store");
const Call = @import("subcommand.zig");

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

/// `-` is standard input, except for a path in the store.
pub fn openImage(
    call: *const Call,
    path: []const u8,
    in_store: bool,
    is_canceled: *const std.atomic.Value(bool),
) Call.Error!FdSource {
    if (in_store) {
        try checkOwn(call, path);
        const file = StoreFile.openBelow(call.opened.on.dir_fd, path, .disk) catch |err|
            return call.fail("{s} {s}.", .{ path, store_module.store_file.sentence(err, .disk) });
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
    var parts = std.mem.splitScalar(u8, path, '/');
    const first = parts.first();
    if (store_module.store_dir.isOwn(first) and
        !std.mem.eql(u8, first, "imports")) return call.fail(
        "{s} is one of the store's own files; put the file into imports/ or another directory below {s}.",
        .{ path, call.path() },
    );
}
