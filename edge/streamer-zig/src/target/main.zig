//! `bootfarm-target`: runs on a device, turns the edge's stream into /dev/nbd0 and reports how the
//! boot went. The initramfs starts it, and it depends on nothing else: static, no files but /proc,
//! raw system calls.

const std = @import("std");
const linux = std.os.linux;
const base = @import("base");
const sys = @import("host").sys;
const console = @import("console.zig");
const control = @import("control_socket.zig");
const collected_steps = @import("collected_steps.zig");
const http_report = @import("http_report.zig");
const StepList = @import("timings/step_list.zig");
const DeviceKey = @import("device_key.zig");
const attach = @import("attach.zig").attach;
const capture = @import("capture/capture.zig");
const prepare = @import("prepare");
const trace = @import("trace/trace.zig");
const usage = @import("usage.zig");

/// One line on the console instead of a stack trace, which is of no use on a device without
/// symbols.
pub const panic = std.debug.FullPanic(panicOneLine);

/// A fault ends the process at once; its parent reports it and starts another.
pub const std_options: std.Options = .{ .enable_segfault_handler = false };

/// How long `ready` and `failed` wait for the edge; the report is retransmitted after that.
const ready_timeout_s = 30;
const failed_timeout_s = 10;
const answer_timeout_s = 5;
/// As long as the kernel's own limit (COMMAND_LINE_SIZE is 2048 on x86 and arm64), with our
/// arguments appended.
const words_size_max = 4096;

pub fn main(init: std.process.Init.Minimal) u8 {
    const arguments = init.args.vector;
    if (arguments.len < 2) return refuse();
    const verb = std.mem.span(arguments[1]);
    const rest = arguments[2..];
    if (usage.Command.fromName(verb)) |command| if (usage.isAsked(rest)) {
        usage.print(1, command);
        return 0;
    };
    if (std.mem.eql(u8, verb, "attach")) {
        var words: [words_size_max]u8 = undefined;
        return attach(readWords(&words, rest), arguments[0]);
    }
    if (std.mem.eql(u8, verb, "ready")) {
        var list: StepList = .{};
        collected_steps.collectUntilReady(&list);
        // Steps only help people: ready is reported without them too.
        _ = sendSteps(&list);
        trace.markReady();
        return report(.ready, rest);
    }
    if (std.mem.eql(u8, verb, "failed") and rest.len > 0) return report(.failed, rest);
    if (std.mem.eql(u8, verb, "timings")) return timings();
    if (std.mem.eql(u8, verb, "cache") and rest.len == 1) return watchCache(rest[0]);
    if (std.mem.eql(u8, verb, "trace")) return trace.run();
    if (std.mem.eql(u8, verb, "hand-over")) return tell("hand-over");
    if (std.mem.eql(u8, verb, "status")) return status();
    if (std.mem.eql(u8, verb, "identity")) return identity();
    if (std.mem.eql(u8, verb, "prepare")) return prepare.run(rest);
    if (std.mem.eql(u8, verb, "capture") and rest.len == 2)
        return capture.run(std.mem.span(rest[0]), rest[1]);
    if (std.mem.eql(u8, verb, "version")) {
        console.print("bootfarm-target {s}", .{base.version});
        return 0;
    }
    if (std.mem.eql(u8, verb, "--help") or std.mem.eql(u8, verb, "help")) {
        usage.print(1, null);
        return 0;
    }
    if (usage.Command.fromName(verb)) |command| {
        usage.print(2, command);
        return 2;
    }
    return refuse();
}

/// The kernel's command line, then the program's arguments, which therefore take precedence.
fn readWords(buffer: *[words_size_max]u8, arguments: []const [*:0]const u8) []const u8 {
    var writer: std.Io.Writer = .fixed(buffer);
    if (sys.check(linux.open("/proc/cmdline", .{ .CLOEXEC = true }, 0))) |fd| {
        defer sys.close(@intCast(fd));
        writer.end = sys.readAt(@intCast(fd), buffer[0 .. words_size_max / 2], 0) catch 0;
    } else |_| {}
    for (arguments) |argument| writer.print(" {s}", .{argument}) catch break;
    return writer.buffered();
}

/// Uses the stream if there is one, otherwise HTTP.
fn report(outcome: http_report.Outcome, words: []const [*:0]const u8) u8 {
    var buffer: [http_report.body_size_max + 16]u8 = undefined;
    var writer: std.Io.Writer = .fixed(&buffer);
    writer.print("{t}", .{outcome}) catch unreachable; // There is room.
    const body_at = writer.end + 1;
    // It is cut.
    for (words[0..@min(words.len, 2)]) |word| writer.print(" {s}", .{word}) catch break;
    const timeout_s: u32 = switch (outcome) {
        .ready => ready_timeout_s,
        .failed => failed_timeout_s,
    };
    var answer: [control.message_size_max]u8 = undefined;
    _ = control.ask(writer.buffered(), timeout_s, &answer) catch |reason| switch (reason) {
        error.NoAnswer => {
            console.say(
                "the edge has not acknowledged within {d} s; the report is sent again when it answers",
                .{timeout_s},
            );
            return 1;
        },
        error.NotRunning => return reportByHttp(
            outcome,
            writer.buffered()[@min(body_at, writer.end)..],
        ),
        error.Refused => return explain(reason),
    };
    return 0;
}

fn reportByHttp(outcome: http_report.Outcome, body: []const u8) u8 {
    var words: [words_size_max]u8 = undefined;
    const address = http_report.Address.find(readWords(&words, &.{})) orelse
        return explain(error.NotRunning);
    if (http_report.post(address, outcome, body)) return 0;
    console.say("the report did not reach the edge {f}", .{address.edge});
    return 1;
}

fn timings() u8 {
    var list: StepList = .{};
    var units: collected_steps.UnitsAccount = .{};
    if (!collected_steps.collectWithSystemd(&list, &units)) {
        console.say("systemd has not finished a boot here", .{});
        return 1;
    }
    const code = sendSteps(&list);
    units.send();
    return code;
}

fn sendSteps(list: *const StepList) u8 {
    var request: [control.message_size_max]u8 = undefined;
    var text: [StepList.text_size_max]u8 = undefined;
    return tell(std.mem.print(&request, "steps {s}", .{list.write(&text)}) catch
        unreachable); // The longest list has room.
}

fn watchCache(folder: [*:0]const u8) u8 {
    var request: [control.message_size_max]u8 = undefined;
    return tell(std.mem.print(&request, "cache {s}", .{folder}) catch {
        console.say("the folder's name is too long", .{});
        return 2;
    });
}

/// Sends a request that only a running target can carry out.
fn tell(request: []const u8) u8 {
    var buffer: [control.message_size_max]u8 = undefined;
    const answer =
        control.ask(request, answer_timeout_s, &buffer) catch |reason| return explain(reason);
    if (std.mem.eql(u8, answer, control.done)) return 0;
    console.say("{s}", .{answer});
    return 1;
}

/// Prints the fingerprint of this machine's key, and shows that its TPM signs.
fn identity() u8 {
    var key = DeviceKey.make() orelse return 1;
    defer key.end();
    const fingerprint = key.fingerprint();
    // The digest says nothing: it is the key's own.
    const signature = key.sign(&fingerprint) orelse return 1;
    if (!base.ecdsa_p256.isSigned(&fingerprint, &signature, &key.public_key)) {
        console.say("the TPM's signature is wrong", .{});
        return 1;
    }
    console.print("{x}", .{&fingerprint});
    return 0;
}

fn status() u8 {
    var buffer: [control.message_size_max]u8 = undefined;
    const text =
        control.ask("status", answer_timeout_s, &buffer) catch |reason| return explain(reason);
    console.print("{s}", .{text});
    return 0;
}

fn explain(reason: control.AskError) u8 {
    switch (reason) {
        error.NotRunning => console.say("no target serves a disk on this machine", .{}),
        error.NoAnswer => console.say("the running target does not answer", .{}),
        error.Refused => console.say("only root may talk to the running target", .{}),
    }
    return 1;
}

fn refuse() u8 {
    console.say("unknown command; see bootfarm-target --help", .{});
    usage.print(2, null);
    return 2;
}

fn panicOneLine(message: []const u8, _: ?usize) noreturn {
    console.say("stopped by an internal fault: {s}", .{message});
    linux.exit_group(134);
}

test {
    _ = usage;
    _ = capture;
    _ = @import("capture/disk_copy.zig");
    _ = @import("disk_link.zig");
    _ = @import("tpm_device.zig");
    _ = @import("ram_cache.zig");
    _ = @import("machine/machine.zig");
    _ = @import("machine/network_card.zig");
    _ = @import("unpack_rate.zig");
    _ = @import("local_disk/block_map.zig");
    _ = @import("local_disk/local_cache.zig");
    _ = @import("local_disk/marked_disk.zig");
    _ = @import("http_report.zig");
    _ = @import("shared_memory.zig");
    _ = @import("edge_socket.zig");
    _ = @import("refusals.zig");
    _ = @import("power_order.zig");
    _ = @import("system_end.zig");
    _ = @import("program_output.zig");
    _ = @import("collected_steps.zig");
    _ = @import("trace/event_line.zig");
    _ = @import("trace/process_names.zig");
    _ = @import("trace/send.zig");
    _ = @import("trace/streamed_disks.zig");
    _ = @import("packet_burst.zig");
    _ = @import("write_cache.zig");
    _ = @import("timings/firmware_table.zig");
    _ = @import("timings/initramfs_steps.zig");
    _ = @import("timings/step_list.zig");
    _ = @import("timings/systemd_times.zig");
    _ = @import("timings/unit_chain.zig");
}
