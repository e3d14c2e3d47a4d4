//! `bootfarm-edge vdisk gc`: frees what no version needs, at a rate; ended at any moment, it has freed less.

const std = @import("std");
const store_module = @import("store");
const arguments = @import("arguments.zig");
const cancel = @import("cancel.zig");
const command = @import("command.zig");
const open_store = @import("open_store.zig");
const output = @import("output.zig");
const Pace = @import("pace.zig").Pace;

const Options = struct {
    store: ?[]const u8 = null,
    rate_mib: ?u32 = null,
    json: bool = false,
};

pub fn run(call: *const command.Call) command.Error!u8 {
    const options = try arguments.parse(Options, call.rest, call.complaint);
    const gpa = std.heap.smp_allocator;
    var opened: open_store.OpenStore = undefined;
    try opened.open(gpa, options.store, call.complaint);
    defer opened.close(gpa);
    var change = try opened.lock("vdisk gc", call.complaint);
    defer change.end();
    cancel.listen();
    store_module.import_checkpoint.tidy(opened.on.files()) catch |err| return complainOf(call, opened.path, err);
    var collection = store_module.collect.Collection.begin(gpa, &change) catch |err| return complainOf(call, opened.path, err);
    defer collection.end();
    var line: output.ProgressLine = .init(options.json);
    const pace: Pace = .init(options.rate_mib);
    while (!cancel.is_asked.load(.monotonic)) {
        const goes_on = collection.step(Pace.step_size) catch |err| return complainOf(call, opened.path, err);
        if (!goes_on) break;
        line.say(.{ .position = collection.seen, .size = null });
        pace.wait(collection.seen);
    }
    line.end();
    var buffer: [128]u8 = undefined;
    const text = if (options.json)
        std.mem.print(&buffer, "{{\"freedBytes\":{d}}}\n", .{collection.freed})
    else
        std.mem.print(&buffer, "freed {f}\n", .{output.Size{ .bytes = collection.freed }});
    call.terminal.out(text catch unreachable);
    return if (cancel.is_asked.load(.monotonic)) command.exit_interrupted else 0;
}

fn complainOf(call: *const command.Call, path: []const u8, problem: store_module.collect.Error) command.Error {
    return switch (problem) {
        error.OutOfMemory => error.OutOfMemory,
        error.Unfinished => call.complaint.set(
            "An import into the store {s} was interrupted; go on with it or give it up first: bootfarm-edge vdisk list --store {s} names it.",
            .{ path, path },
        ),
        error.Damaged, error.NotAManifest, error.WrongSignature, error.Malformed, error.OtherStore, error.OtherName, error.TooNew => call.complaint.set(
            "Nothing is freed: a version in the store {s} is damaged, and what it needs is not known; see bootfarm-edge vdisk verify --store {s}.",
            .{ path, path },
        ),
        error.ReadFailed => call.complaint.set("The store {s} cannot be read: the disk reports an error.", .{path}),
        else => |other| call.complaint.set("The store {s} {s}.", .{ path, store_module.files.sentence(other) }),
    };
}
