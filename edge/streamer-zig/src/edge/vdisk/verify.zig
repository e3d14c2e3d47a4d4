//! `bootfarm-edge vdisk verify`: reads what versions consist of, at a rate, and names what is not as it was sealed.

const std = @import("std");
const base = @import("base");
const store_module = @import("store");
const arguments = @import("arguments.zig");
const cancel = @import("cancel.zig");
const command = @import("command.zig");
const open_store = @import("open_store.zig");
const output = @import("output.zig");
const Pace = @import("pace.zig").Pace;
const Uuid = base.Uuid;

const Complaint = @import("../options.zig").Complaint;
const Verification = store_module.verify.Verification;

const Options = struct {
    store: ?[]const u8 = null,
    /// Absent: all of them.
    version: ?Uuid = null,
    rate_mib: ?u32 = null,
    json: bool = false,
};

const Running = struct {
    call: *const command.Call,
    options: Options,
    opened: *open_store.OpenStore,
    verification: Verification,
    line: output.ProgressLine,
    pace: Pace,
    problems: u64 = 0,
};

pub fn run(call: *const command.Call) command.Error!u8 {
    const options = try arguments.parse(Options, call.rest, call.complaint);
    const gpa = std.heap.smp_allocator;
    var opened: open_store.OpenStore = undefined;
    try opened.open(gpa, options.store, call.complaint);
    defer opened.close(gpa);
    cancel.listen();
    var running: Running = .{
        .call = call,
        .options = options,
        .opened = &opened,
        .verification = .init(gpa, &opened.store),
        .line = .init(options.json),
        .pace = .init(options.rate_mib),
    };
    defer running.verification.deinit();
    if (options.version) |id| try verify(&running, id) else try verifyAll(&running);
    running.line.end();
    const is_ended = cancel.is_asked.load(.monotonic);
    var buffer: [160]u8 = undefined;
    const text = if (options.json)
        std.mem.print(&buffer, "{{\"checkedBytes\":{d},\"problems\":{d}}}\n", .{ running.verification.checked, running.problems })
    else
        std.mem.print(&buffer, "{f} are as they were sealed; {d} problems\n", .{
            output.Size{ .bytes = running.verification.checked },
            running.problems,
        });
    call.terminal.out(text catch unreachable);
    if (running.problems > 0) return 1;
    return if (is_ended) command.exit_interrupted else 0;
}

fn verifyAll(running: *Running) command.Error!void {
    var id: ?Uuid = null;
    while (running.opened.store.nextVersion(id) catch |err| return running.call.complaint.set(
        "The store {s} cannot be listed: it {s}.",
        .{ running.opened.path, store_module.files.sentence(err) },
    )) |found| {
        id = found;
        try verify(running, found);
    }
}

fn verify(running: *Running, id: Uuid) command.Error!void {
    var version = running.opened.store.openVersion(id) catch |err| {
        var complaint: Complaint = .{};
        open_store.complainOfVersion(running.opened.path, id, err, &complaint) catch {};
        return tell(running, id, null, complaint.text());
    };
    defer version.close();
    running.verification.begin(&version.manifest);
    while (!cancel.is_asked.load(.monotonic)) {
        switch (try running.verification.step(Pace.step_size)) {
            .done => return,
            .more => {},
            .problem => |problem| tell(running, id, problem.step.first * store_module.block.block_size, switch (problem.why) {
                error.Damaged => if (problem.step.level == null) "a block is damaged" else "a node is damaged, and nothing is known of what is below it",
                error.ReadFailed => "it cannot be read: the disk reports an error",
            }),
        }
        running.line.say(.{ .position = running.verification.checked, .size = null });
        running.pace.wait(running.verification.checked);
    }
}

/// `at`: bytes from the begin of the disk.
fn tell(running: *Running, id: Uuid, at: ?u64, why: []const u8) void {
    running.problems += 1;
    var buffer: [1024]u8 = undefined;
    var writer: std.Io.Writer = .fixed(&buffer);
    write(running, &writer, id, at, why) catch return;
    running.call.terminal.out(writer.buffered());
}

fn write(running: *Running, writer: *std.Io.Writer, id: Uuid, at: ?u64, why: []const u8) std.Io.Writer.Error!void {
    if (running.options.json) {
        var json: std.json.Stringify = .{ .writer = writer };
        try json.beginObject();
        try output.field(&json, "version", id);
        try output.field(&json, "atByte", at);
        try output.field(&json, "problem", why);
        try json.endObject();
    } else if (at) |byte| {
        try writer.print("version {f}, at byte {d}: {s}", .{ id, byte, why });
    } else try writer.writeAll(why);
    try writer.writeByte('\n');
}
