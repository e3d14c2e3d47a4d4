//! `bootfarm-edge vdisk verify`: reads the data of versions, at a limited rate, and names what
//! differs from what was sealed. For one version it also prints, for programs, what the version is:
//! the edge adopts images that were imported by hand from that.

const std = @import("std");
const base = @import("base");
const store_module = @import("store");
const cancel = @import("cancel.zig");
const Call = @import("subcommand.zig");
const open_store = @import("open_store.zig");
const output = @import("output.zig");
const Pace = @import("pace.zig");
const Uuid = base.Uuid;

const Complaint = @import("../options.zig").Complaint;
const Verification = store_module.verify.Verification;

pub const Options = struct {
    /// Null: all of them.
    version: ?Uuid = null,
    rate_mib: ?u32 = null,
    /// Uses at most half of the disk's time.
    idle: bool = false,
};

const VerifyRun = struct {
    call: *const Call,
    verification: Verification,
    line: output.ProgressLine,
    pace: Pace,
    problems: u64 = 0,
};

pub fn run(call: *const Call, options: *const Options) Call.Error!u8 {
    cancel.listen();
    var running: VerifyRun = .{
        .call = call,
        .verification = .init(call.gpa, call.store()),
        .line = .init(call.is_json),
        .pace = .init(options.rate_mib, options.idle),
    };
    defer running.verification.deinit();
    if (options.version) |id| try verify(&running, id) else try verifyAll(&running);
    running.line.end();
    if (options.version) |id| if (call.is_json and running.problems == 0 and
        !cancel.is_asked.load(.monotonic))
    {
        const manifest = call.store().manifestOf(id) catch |err| return call.failVersion(id, err);
        call.print(output.Version{ .manifest = &manifest }, "", .{});
    };
    const checked = running.verification.checked;
    call.print(
        .{ .checkedBytes = checked, .problems = running.problems },
        "{f} are unchanged since they were sealed; {d} problems",
        .{ output.Size{ .bytes = checked }, running.problems },
    );
    if (running.problems > 0) return call.fail(
        "The store {s} is damaged in {d} places: restore the versions named above from another store, or import them again.",
        .{ call.path(), running.problems },
    );
    return if (cancel.is_asked.load(.monotonic)) Call.exit_interrupted else 0;
}

fn verifyAll(running: *VerifyRun) Call.Error!void {
    var id: ?Uuid = null;
    const call = running.call;
    while (call.store().nextVersion(id) catch |err| return call.fail(
        "The store {s} cannot be listed: it {s}.",
        .{ call.path(), store_module.files.sentence(err) },
    )) |found| {
        id = found;
        verify(running, found) catch |err| switch (err) {
            // Deleted in the meantime.
            error.Wrong => if (call.store().manifestOf(found)) |_|
                return err
            else |why| if (why != error.NotFound) return err,
            else => return err,
        };
    }
}

fn verify(running: *VerifyRun, id: Uuid) Call.Error!void {
    const call = running.call;
    var version = call.store().openVersion(id) catch |err| switch (err) {
        error.Damaged,
        error.NotAManifest,
        error.WrongSignature,
        error.Malformed,
        error.OtherStore,
        error.OtherName,
        => {
            var complaint: Complaint = .{};
            open_store.explainVersion(call.path(), id, err, &complaint) catch {};
            return report(running, id, null, complaint.text());
        },
        else => |other| return call.failVersion(id, other),
    };
    defer version.close();
    verifyBootFiles(running, &version.manifest);
    running.verification.begin(&version.manifest);
    while (!cancel.is_asked.load(.monotonic)) {
        switch (try running.verification.step(Pace.step_size)) {
            .done => return,
            .more => {},
            .problem => |problem| report(
                running,
                id,
                problem.step.first * store_module.block.block_size,
                switch (problem.why) {
                    error.Damaged => if (problem.step.level == null)
                        "a block is damaged"
                    else
                        "a node is damaged, and nothing below it can be checked",
                    error.ReadFailed => "it cannot be read: the disk reports an error",
                },
            ),
        }
        running.line.update(.{ .position = running.verification.checked, .size = null });
        running.pace.wait(running.verification.checked);
    }
}

/// They are read once, without a rate limit: they are small compared with a disk.
fn verifyBootFiles(running: *VerifyRun, manifest: *const store_module.Manifest) void {
    for ([_]?store_module.manifest.BootFile{
        manifest.kernel,
        manifest.initrd,
    }, [_][]const u8{ "kernel", "initramfs" }) |file, noun| {
        store_module.boot_bundle.check(
            running.call.files(),
            if (file) |*given| given else continue,
        ) catch |err| {
            var buffer: [128]u8 = undefined;
            const sentence = std.mem.print(&buffer, "The {s} of version {f} {s}.", .{
                noun, manifest.version,
                if (err == error.NotFound)
                    "is missing"
                else
                    "is damaged, or cannot be read",
            }) catch unreachable;
            report(running, manifest.version, null, sentence);
        };
    }
}

/// `at` is in bytes from the start of the disk.
fn report(running: *VerifyRun, id: Uuid, at: ?u64, why: []const u8) void {
    running.problems += 1;
    const line = .{ .version = id, .atByte = at, .problem = why };
    if (at) |byte| running.call.print(
        line,
        "version {f}, at byte {d}: {s}",
        .{ id, byte, why },
    ) else running.call.print(line, "{s}", .{why});
}
