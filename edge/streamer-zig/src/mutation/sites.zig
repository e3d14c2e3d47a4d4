//! Finds where a source file can be mutated: inverted conditions, other operators, shifted
//! constants, dropped statements. `mutate.zig` draws from what this finds. Tests, asserts, log
//! lines, types, and what the compiler computes have no sites. A site that does not compile is
//! left out later, by the compiler's word.

const std = @import("std");
const Ast = std.zig.Ast;
const Node = Ast.Node;
const Allocator = std.mem.Allocator;

pub const Span = struct {
    first: u32,
    end: u32,

    fn contains(span: Span, other: Span) bool {
        return span.first <= other.first and other.end <= span.end;
    }
};

pub const Site = struct {
    /// What is repeated with the mutant in it: an expression, or a statement with its semicolon.
    host: Span,
    is_statement: bool,
    /// What is replaced by `text`; the whole host of a dropped statement.
    edit: Span,
    text: []const u8,
    function: []const u8,
    /// The function's body.
    scope: Span,

    pub fn isDropped(site: *const Site) bool {
        return site.text.len == 0 and site.is_statement;
    }
};

const Function = struct { name: []const u8, body: Span, is_type: bool };

const Finder = struct {
    arena: Allocator,
    tree: *const Ast,
    spans: []Span,
    functions: std.ArrayList(Function) = .empty,
    /// Structs, enums and unions, which may be inside functions.
    containers: std.ArrayList(Span) = .empty,
    excluded: std.ArrayList(Span) = .empty,
    /// Numbers with a name.
    constants: std.StringHashMapUnmanaged(void) = .empty,
    conditions: std.AutoHashMapUnmanaged(Node.Index, void) = .empty,
    sites: std.ArrayList(Site) = .empty,

    fn spanOf(finder: *const Finder, node: Node.Index) Span {
        return finder.spans[@backingInt(node)];
    }

    fn textOf(finder: *const Finder, node: Node.Index) []const u8 {
        const span = finder.spanOf(node);
        return finder.tree.source[span.first..span.end];
    }

    fn tokenSpan(finder: *const Finder, token: Ast.TokenIndex) Span {
        const first = finder.tree.tokenStart(token);
        const size: u32 = @intCast(finder.tree.tokenSlice(token).len);
        return .{ .first = first, .end = first + size };
    }

    fn exclude(finder: *Finder, node: Node.Index) !void {
        try finder.excluded.append(finder.arena, finder.spanOf(node));
    }

    /// Adds a site, unless its host is where nothing is mutated.
    fn add(finder: *Finder, host: Span, is_statement: bool, edit: Span, text: []const u8) !void {
        const source = finder.tree.source[host.first..host.end];
        // The suffix would become a part of the string.
        if (std.mem.lastIndexOfScalar(u8, source, '\n')) |line| {
            const last = std.mem.trimStart(u8, source[line + 1 ..], " ");
            if (std.mem.startsWith(u8, last, "\\\\")) return;
        }
        if (std.mem.find(u8, source, "mutants.has(") != null) return;
        if (std.mem.find(u8, source, "simulated.has(") != null) return;
        for (finder.excluded.items) |span| if (span.contains(edit)) return;
        var innermost: ?*const Function = null;
        for (finder.functions.items) |*function| {
            if (!function.body.contains(host)) continue;
            if (innermost == null or innermost.?.body.contains(function.body)) innermost = function;
        }
        const function = innermost orelse return;
        if (function.is_type or std.mem.startsWith(u8, function.name, "assert")) return;
        for (finder.containers.items) |span|
            if (function.body.contains(span) and span.contains(host)) return;
        try finder.sites.append(finder.arena, .{
            .host = host,
            .is_statement = is_statement,
            .edit = edit,
            .text = text,
            .function = function.name,
            .scope = function.body,
        });
    }

    /// Notes what has to be known of a node before sites are looked for.
    fn survey(finder: *Finder, node: Node.Index) !void {
        const tree = finder.tree;
        var buffer: [1]Node.Index = undefined;
        var two: [2]Node.Index = undefined;
        switch (tree.nodeTag(node)) {
            .test_decl => try finder.excluded.append(finder.arena, .{
                .first = finder.spanOf(node).first,
                .end = @intCast(tree.source.len),
            }),
            .@"comptime" => try finder.exclude(node),
            .fn_decl => {
                const proto = tree.fullFnProto(&buffer, node).?;
                const returned = finder.textOf(proto.ast.return_type.unwrap().?);
                _, const body = tree.nodeData(node).node_and_node;
                try finder.functions.append(finder.arena, .{
                    .name = if (proto.name_token) |token| tree.tokenSlice(token) else "",
                    .body = finder.spanOf(body),
                    .is_type = std.mem.eql(u8, returned, "type"),
                });
            },
            .global_var_decl, .simple_var_decl => try finder.surveyConstant(node),
            else => {},
        }
        if (tree.nodeTag(node) != .root and tree.fullContainerDecl(&two, node) != null)
            try finder.containers.append(finder.arena, finder.spanOf(node));
        const is_type = tree.fullArrayType(node) != null or tree.fullPtrType(node) != null;
        if (is_type) try finder.exclude(node);
        if (tree.fullSwitchCase(node)) |case|
            for (case.ast.values) |value| try finder.exclude(value);
        if (tree.fullSlice(node)) |slice| if (slice.ast.end.unwrap()) |end| {
            const is_literal = tree.nodeTag(slice.ast.start) == .number_literal;
            if (tree.nodeTag(end) == .number_literal) try finder.exclude(end);
            if (is_literal) try finder.exclude(slice.ast.start);
        };
        if (tree.fullCall(&buffer, node)) |call| {
            if (isSilent(finder.textOf(call.ast.fn_expr))) try finder.exclude(node);
        }
        if (tree.fullIf(node)) |it| {
            // A mistake that only the simulation has.
            const text = finder.textOf(it.ast.cond_expr);
            const is_planted = std.mem.startsWith(u8, text, "mutants.has(") or
                std.mem.startsWith(u8, text, "simulated.has(");
            if (is_planted) try finder.exclude(it.ast.then_expr);
        }
        const condition = if (tree.fullIf(node)) |it|
            (if (it.payload_token == null) it.ast.cond_expr else return)
        else if (tree.fullWhile(node)) |it|
            (if (it.payload_token == null) it.ast.cond_expr else return)
        else
            return;
        try finder.conditions.put(finder.arena, condition, {});
    }

    fn surveyConstant(finder: *Finder, node: Node.Index) !void {
        const tree = finder.tree;
        const declared = tree.fullVarDecl(node).?;
        const value = declared.ast.init_node.unwrap() orelse return;
        const name = tree.tokenSlice(declared.ast.mut_token + 1);
        if (std.mem.eql(u8, name, "testing")) try finder.excluded.append(finder.arena, .{
            .first = finder.spanOf(node).first,
            .end = @intCast(tree.source.len),
        });
        switch (tree.nodeTag(value)) {
            .number_literal, .mul, .div, .add, .sub, .shl => {},
            else => return,
        }
        try finder.constants.put(finder.arena, name, {});
    }

    /// Adds the sites of an expression.
    fn findIn(finder: *Finder, node: Node.Index) !void {
        const tree = finder.tree;
        const tag = tree.nodeTag(node);
        const span = finder.spanOf(node);
        const main = finder.tokenSpan(tree.nodeMainToken(node));
        for (otherOperators(tag)) |other| try finder.add(span, false, main, other);
        const is_condition = finder.conditions.contains(node);
        if (tag == .bool_not) {
            try finder.add(span, false, main, " ");
        } else if (is_condition and !isComparison(tag) and tag != .identifier) {
            try finder.add(span, false, span, try finder.print("!({s})", .{finder.textOf(node)}));
        }
        const text = finder.textOf(node);
        if (tag == .number_literal) {
            const shift = if (span.first % 2 == 0 or std.mem.eql(u8, text, "0")) "+" else "-";
            const other = try finder.print("({s} {s} 1)", .{ text, shift });
            try finder.add(finder.hostOf(span), false, span, other);
        } else if (tag == .identifier) {
            const is_true = std.mem.eql(u8, text, "true");
            if (is_true or std.mem.eql(u8, text, "false")) {
                try finder.add(span, false, span, if (is_true) "false" else "true");
            } else if (finder.constants.contains(text)) {
                const other = try finder.print("({s} + 1)", .{text});
                try finder.add(finder.hostOf(span), false, span, other);
            } else if (is_condition) {
                try finder.add(span, false, span, try finder.print("!{s}", .{text}));
            }
        } else if (std.mem.startsWith(u8, text, "@min(")) {
            try finder.add(span, false, main, "@max");
        } else if (std.mem.startsWith(u8, text, "@max(")) {
            try finder.add(span, false, main, "@min");
        }
    }

    /// Returns the expression around a number that has a type of its own: an operation.
    fn hostOf(finder: *const Finder, number: Span) Span {
        var host = number;
        while (true) {
            var parent: ?u32 = null;
            for (finder.spans, 0..) |span, index| {
                if (!span.contains(host) or std.meta.eql(span, host)) continue;
                if (parent) |found| if (!finder.spans[found].contains(span)) continue;
                parent = @intCast(index);
            }
            const node: Node.Index = @fromBackingInt(@intCast(parent orelse return host));
            const tag = finder.tree.nodeTag(node);
            const text = finder.textOf(node);
            const is_choice = std.mem.startsWith(u8, text, "@min(") or
                std.mem.startsWith(u8, text, "@max(");
            if (isComparison(tag)) return finder.spanOf(node);
            if (!isArithmetic(tag) and !is_choice) return host;
            host = finder.spanOf(node);
        }
    }

    /// Adds the sites of a statement, and of those that it runs.
    fn findStatement(finder: *Finder, node: Node.Index) Allocator.Error!void {
        const tree = finder.tree;
        if (tree.fullIf(node)) |it| {
            try finder.findStatement(it.ast.then_expr);
            if (it.ast.else_expr.unwrap()) |other| try finder.findStatement(other);
            return;
        }
        if (tree.fullWhile(node)) |it| return finder.findStatement(it.ast.then_expr);
        if (tree.fullFor(node)) |it| return finder.findStatement(it.ast.then_expr);
        if (tree.fullSwitch(node)) |it| {
            for (it.ast.cases) |case|
                try finder.findStatement(tree.fullSwitchCase(case).?.ast.target_expr);
            return;
        }
        const tag = tree.nodeTag(node);
        switch (tag) {
            .@"defer", .@"errdefer" => return finder.findStatement(tree.nodeData(node).node),
            .call, .call_comma, .call_one, .call_one_comma, .@"try", .@"catch", .assign => {},
            .builtin_call, .builtin_call_comma, .builtin_call_two, .builtin_call_two_comma => {},
            else => if (otherAssignment(tag) == null) return,
        }
        var host = finder.spanOf(node);
        const after = tree.lastToken(node) + 1;
        if (tree.tokenTag(after) == .semicolon) host.end = finder.tokenSpan(after).end;
        const own = finder.spanOf(node);
        for (finder.excluded.items) |span| if (span.contains(own)) return;
        const text = finder.textOf(node);
        const is_call = std.mem.findScalar(u8, text, '(') != null;
        if (std.mem.startsWith(u8, text, "_ = ") and !is_call) return;
        if (std.mem.endsWith(u8, text, "= undefined")) return;
        try finder.add(host, true, host, "");
        if (otherAssignment(tag)) |other|
            try finder.add(host, true, finder.tokenSpan(tree.nodeMainToken(node)), other);
    }

    fn print(finder: *Finder, comptime format: []const u8, values: anytype) ![]const u8 {
        return std.fmt.allocPrint(finder.arena, format, values);
    }
};

/// Returns the sites of a file, in the order of its text.
pub fn find(arena: Allocator, source: [:0]const u8) ![]Site {
    const tree: Ast = try .parse(arena, source, .{});
    var finder: Finder = .{
        .arena = arena,
        .tree = &tree,
        .spans = try arena.alloc(Span, tree.nodes.len),
    };
    for (finder.spans, 0..) |*span, index| {
        const node: Node.Index = @fromBackingInt(@intCast(index));
        span.* = .{
            .first = tree.tokenStart(tree.firstToken(node)),
            .end = finder.tokenSpan(tree.lastToken(node)).end,
        };
    }
    for (0..tree.nodes.len) |index| try finder.survey(@fromBackingInt(@intCast(index)));
    for (0..tree.nodes.len) |index| {
        const node: Node.Index = @fromBackingInt(@intCast(index));
        try finder.findIn(node);
        var buffer: [2]Node.Index = undefined;
        const statements = tree.blockStatements(&buffer, node) orelse continue;
        for (statements) |statement| try finder.findStatement(statement);
    }
    std.sort.insertion(Site, finder.sites.items, {}, isBefore);
    return finder.sites.items;
}

fn isBefore(_: void, a: Site, b: Site) bool {
    if (a.edit.first != b.edit.first) return a.edit.first < b.edit.first;
    if (a.edit.end != b.edit.end) return a.edit.end < b.edit.end;
    return std.mem.order(u8, a.text, b.text) == .lt;
}

/// Returns whether a call changes nothing that a device or another edge can see.
fn isSilent(callee: []const u8) bool {
    for ([_][]const u8{ "assert", "std.debug.", "log.", "log_lines.", "std.log." }) |start|
        if (std.mem.startsWith(u8, callee, start)) return true;
    return std.mem.find(u8, callee, ".assert") != null or std.mem.endsWith(u8, callee, "io.log");
}

fn isComparison(tag: Node.Tag) bool {
    return switch (tag) {
        .equal_equal, .bang_equal, .less_than, .greater_than => true,
        .less_or_equal, .greater_or_equal => true,
        else => false,
    };
}

fn isArithmetic(tag: Node.Tag) bool {
    return switch (tag) {
        .mul, .div, .mod, .mul_wrap, .mul_sat, .add, .sub, .add_wrap, .sub_wrap => true,
        .add_sat, .sub_sat, .shl, .shl_sat, .shr, .bit_and, .bit_or, .bit_xor => true,
        .negation, .bit_not, .grouped_expression => true,
        else => false,
    };
}

fn otherOperators(tag: Node.Tag) []const []const u8 {
    return switch (tag) {
        .equal_equal => &.{"!="},
        .bang_equal => &.{"=="},
        .less_than => &.{ "<=", ">=" },
        .less_or_equal => &.{ "<", ">" },
        .greater_than => &.{ ">=", "<=" },
        .greater_or_equal => &.{ ">", "<" },
        .bool_and => &.{"or"},
        .bool_or => &.{"and"},
        .add => &.{"-"},
        .sub => &.{"+"},
        .add_wrap => &.{"-%"},
        .sub_wrap => &.{"+%"},
        .add_sat => &.{"-|"},
        .sub_sat => &.{"+|"},
        .mul => &.{"/"},
        .div => &.{"*"},
        .mod => &.{"/"},
        .shl => &.{">>"},
        .shr => &.{"<<"},
        .bit_and => &.{"|"},
        .bit_or, .bit_xor => &.{"&"},
        else => &.{},
    };
}

fn otherAssignment(tag: Node.Tag) ?[]const u8 {
    return switch (tag) {
        .assign_add => "-=",
        .assign_sub => "+=",
        .assign_mul => "/=",
        .assign_div => "*=",
        .assign_shl => ">>=",
        .assign_shr => "<<=",
        .assign_bit_or, .assign_bit_xor => "&=",
        .assign_bit_and => "|=",
        .assign_add_wrap => "-%=",
        .assign_sub_wrap => "+%=",
        .assign_add_sat => "-|=",
        .assign_sub_sat => "+|=",
        else => null,
    };
}

const testing = std.testing;

test "a site is found for each condition, operator, constant and statement, and none in an assert" {
    const sites = try testSites(
        \\const most = 4;
        \\fn f(a: u8, b: bool) u8 {
        \\    assert(a < 3);
        \\    if (b) g();
        \\    return a + most;
        \\}
    );
    var texts: [6][]const u8 = undefined;
    try testing.expectEqual(4, sites.len);
    for (sites, texts[0..4]) |*site, *text| text.* = site.text;
    try testing.expectEqualDeep(
        @as([]const []const u8, &.{ "!b", "", "-", "(most + 1)" }),
        texts[0..4],
    );
    try testing.expect(sites[1].isDropped());
}

test "tests, comptime blocks and types have no sites" {
    try testing.expectEqual(0, (try testSites(
        \\fn f() void {
        \\    comptime {
        \\        g(1 + 2);
        \\    }
        \\    var buffer: [4]u8 = undefined;
        \\}
        \\test { f(3); }
    )).len);
}

fn testSites(source: [:0]const u8) ![]Site {
    const State = struct {
        var arena: std.heap.ArenaAllocator = .init(std.heap.page_allocator);
    };
    return find(State.arena.allocator(), source);
}
