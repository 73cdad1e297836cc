-- What a user of Neovim does with the file it was started on: reads, hovers, takes the first quick fix.
-- Writes what was seen to $SEEN, as JSON.

local function waited(what, asked)
  if not vim.wait(30000, asked, 20) then
    io.stderr:write("never came: " .. what .. "\n")
    vim.cmd("cquit")
  end
end

local function first_float()
  for _, window in ipairs(vim.api.nvim_list_wins()) do
    if vim.api.nvim_win_get_config(window).relative ~= "" then
      return table.concat(vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(window), 0, -1, false), "\n")
    end
  end
end

local seen = { titles = {} }
waited("diagnostics", function() return #vim.diagnostic.get(0) > 0 end)
local found = vim.diagnostic.get(0)[1]
seen.count = #vim.diagnostic.get(0)
seen.code, seen.source, seen.line, seen.column = found.code, found.source, found.lnum, found.col
seen.code = seen.code or found.user_data.lsp.code -- as of 0.7
vim.api.nvim_win_set_cursor(0, { found.lnum + 1, found.col })

vim.lsp.buf.hover()
waited("hover", first_float)
seen.hover = first_float()

vim.ui.select = function(items, options, chosen)
  for _, each in ipairs(items) do seen.titles[#seen.titles + 1] = options.format_item(each) end
  chosen(items[1], 1)
end
vim.lsp.buf.code_action()
local before = vim.api.nvim_buf_get_lines(0, 0, -1, false)
waited("the fix", function() return not vim.deep_equal(before, vim.api.nvim_buf_get_lines(0, 0, -1, false)) end)
seen.text = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\n")
waited("clean diagnostics", function() return #vim.diagnostic.get(0) == 0 end)

local out = io.open(os.getenv("SEEN"), "w")
out:write(vim.json and vim.json.encode(seen) or vim.fn.json_encode(seen))
out:close()
vim.cmd("qall!")
