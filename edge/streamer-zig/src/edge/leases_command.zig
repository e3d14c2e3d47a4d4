//! `bootfarm-edge leases`: lists the addresses that the DHCP server has leased, from the data
//! directory of an edge that may be running.

const std = @import("std");
const base = @import("base");
const host = @import("host");
const options_module = @import("options.zig");
const Terminal = @import("terminal.zig").Terminal;

const Complaint = options_module.Complaint;
const Row = host.lease_file.Row;

pub fn run(init: std.process.Init, arguments: []const [:0]const u8, terminal: *Terminal) u8 {
    var complaint: Complaint = .{};
    const options = options_module.parseLeases(arguments, &complaint) catch
        return terminal.fail("{s}", .{complaint.text()});
    const arena = init.arena.allocator();
    const dir = std.Io.Dir.cwd().openDir(init.io, options.data, .{}) catch
        return terminal.fail("The data directory {s} cannot be read.", .{options.data});
    const rows = host.lease_file.read(arena, dir.handle) catch |err| return switch (err) {
        error.Missing => terminal.fail(
            "{s} has no leases: no edge has run with --dhcp server and this directory.",
            .{options.data},
        ),
        error.OutOfMemory => terminal.fail("There is not enough memory.", .{}),
        else => terminal.fail("{s}/leases cannot be read.", .{options.data}),
    };
    var text: std.Io.Writer.Allocating = .init(arena);
    write(arena, &text.writer, rows, host.sys.unixMs(), options.json) catch
        return terminal.fail("There is not enough memory.", .{});
    terminal.out(text.written());
    return 0;
}

/// The present state of an address, as the table shows it.
const State = enum {
    bound,
    /// The lease expired or was released; its client gets the address again.
    remembered,
    declined,
    free,

    fn of(row: *const Row, now_unix_ms: u64) State {
        const is_running = row.untilUnixMs > now_unix_ms;
        return switch (row.state) {
            .bound => if (is_running) .bound else .remembered,
            .declined => if (is_running) .declined else .free,
            .remembered => if (row.mac.eql(.zero)) .free else .remembered,
        };
    }
};

const Line = struct {
    ip: base.Ip4,
    state: State,
    mac: ?base.Mac,
    /// Hex; null if the client is known by its MAC.
    clientId: ?[]const u8,
    until: ?[]const u8,
};

fn write(
    arena: std.mem.Allocator,
    writer: *std.Io.Writer,
    rows: []const Row,
    now_unix_ms: u64,
    json: bool,
) (std.Io.Writer.Error || error{OutOfMemory})!void {
    const sorted = try arena.dupe(Row, rows);
    std.sort.pdq(Row, sorted, {}, isBefore);
    if (!json) try writer.print("{s:<16}{s:<12}{s:<19}{s:<22}{s}\n", .{
        "address", "state", "MAC", "until", "client id",
    });
    for (sorted) |*row| {
        const state: State = .of(row, now_unix_ms);
        if (state == .free) continue;
        const is_held = state == .bound or state == .declined;
        const line: Line = .{
            .ip = row.ip,
            .state = state,
            .mac = if (row.mac.eql(.zero)) null else row.mac,
            .clientId = if (row.clientId.len > 0) row.clientId else null,
            .until = if (is_held) try timeText(arena, row.untilUnixMs) else null,
        };
        if (json) {
            try std.json.Stringify.value(line, .{}, writer);
            try writer.writeByte('\n');
            continue;
        }
        var ip_buffer: [base.Ip4.text_size_max]u8 = undefined;
        const mac_text = if (line.mac) |mac| mac.toText() else null;
        try writer.print("{s:<16}{t:<12}{s:<19}{s:<22}{s}\n", .{
            std.mem.print(&ip_buffer, "{f}", .{line.ip}) catch unreachable,
            line.state,
            if (mac_text) |*text| text else "-",
            line.until orelse "-",
            line.clientId orelse "-",
        });
    }
}

fn isBefore(_: void, a: Row, b: Row) bool {
    return a.ip.toInt() < b.ip.toInt();
}

/// Formats an instant as RFC 3339, UTC.
fn timeText(arena: std.mem.Allocator, unix_ms: u64) error{OutOfMemory}![]const u8 {
    // The last year with four digits.
    const seconds = @min(unix_ms / std.time.ms_per_s, 253402300799);
    const epoch: std.time.epoch.EpochSeconds = .{ .secs = seconds };
    const year_day = epoch.getEpochDay().calculateYearDay();
    const month_day = year_day.calculateMonthDay();
    const day = epoch.getDaySeconds();
    return std.fmt.allocPrint(arena, "{d:0>4}-{d:0>2}-{d:0>2}T{d:0>2}:{d:0>2}:{d:0>2}Z", .{
        year_day.year,
        month_day.month.numeric(),
        month_day.day_index + 1,
        day.getHoursIntoDay(),
        day.getMinutesIntoHour(),
        day.getSecondsIntoMinute(),
    });
}

const testing = std.testing;

test "the table has each address that belongs to a client, with its present state" {
    var arena: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena.deinit();
    const mac: base.Mac = .fromInt(0x02bf00000001);
    const rows = [_]Row{
        .{
            .ip = .init(10, 0, 0, 12),
            .mac = mac,
            .clientId = "",
            .state = .bound,
            .untilUnixMs = 1_790_000_000_000,
        },
        .{
            .ip = .init(10, 0, 0, 11),
            .mac = mac,
            .clientId = "00aa",
            .state = .bound,
            .untilUnixMs = 1,
        },
        .{
            .ip = .init(10, 0, 0, 13),
            .mac = .zero,
            .clientId = "",
            .state = .declined,
            .untilUnixMs = 1,
        },
        .{
            .ip = .init(10, 0, 0, 14),
            .mac = .zero,
            .clientId = "",
            .state = .declined,
            .untilUnixMs = 1_790_000_000_000,
        },
        .{
            .ip = .init(10, 0, 0, 15),
            .mac = .zero,
            .clientId = "",
            .state = .remembered,
            .untilUnixMs = 0,
        },
    };
    var text: std.Io.Writer.Allocating = .init(arena.allocator());
    try write(arena.allocator(), &text.writer, &rows, 1_780_000_000_000, false);
    try testing.expectEqualStrings(
        \\address         state       MAC                until                 client id
        \\10.0.0.11       remembered  02:bf:00:00:00:01  -                     00aa
        \\10.0.0.12       bound       02:bf:00:00:00:01  2026-09-21T14:13:20Z  -
        \\10.0.0.14       declined    -                  2026-09-21T14:13:20Z  -
        \\
    , text.written());
    text.clearRetainingCapacity();
    try write(arena.allocator(), &text.writer, rows[0..1], 1_780_000_000_000, true);
    try testing.expectEqualStrings(
        "{\"ip\":\"10.0.0.12\",\"state\":\"bound\",\"mac\":\"02:bf:00:00:00:01\",\"clientId\":null,\"until\":\"2026-09-21T14:13:20Z\"}\n",
        text.written(),
    );
}
