# Runs the tests of minitest in the given files and writes what it found as JUnit XML, each test with its file. The
# report is written when all is over; a file that cannot be loaded is a case without a class.
report, *files = ARGV
pattern = files.first&.start_with?("--pattern=") ? Regexp.new(files.shift.delete_prefix("--pattern=")) : nil
root = Dir.pwd
begin
  require "minitest"
rescue LoadError
  warn "cannot load minitest"
  exit! 127
end
# A test file that asks for `minitest/autorun` must not start a run of its own.
Minitest.class_variable_set(:@@installed_at_exit, true)
%w[lib test spec].each { |name| $LOAD_PATH.unshift(File.join(root, name)) if File.directory?(File.join(root, name)) }
ARGV.clear

broken = []
files.each do |file|
  load File.expand_path(file, root)
rescue Exception => error # rubocop:disable Lint/RescueException
  frames = (error.backtrace || []).select { |line| line.start_with?(root) }.first(20)
  broken << [file, "#{error.class}: #{error.message}\n#{frames.join("\n")}"]
end

Reporter = Class.new(Minitest::AbstractReporter) do
  attr_reader :results

  def initialize
    super()
    @results = []
  end

  def record(result) = @results << result
  def passed? = true
end
reporter = Reporter.new
options = { seed: 0, io: $stdout }
options[:include] = pattern if pattern
options[:filter] = pattern if pattern
srand(0)
Minitest.seed = 0 if Minitest.respond_to?(:seed=)
reporter.start
Minitest.__run(reporter, options)

escape = ->(text) { text.to_s.encode("UTF-8", invalid: :replace, undef: :replace).gsub(/[^\t\n\u0020-\uD7FF\uE000-\uFFFD]/, "?").encode(xml: :attr) }
failed = reporter.results.reject { |result| result.passed? || result.skipped? }
lines = ["<?xml version=\"1.0\" encoding=\"UTF-8\"?>"]
lines << "<testsuite name=\"minitest\" tests=\"#{reporter.results.size + broken.size}\" failures=\"#{failed.size}\" errors=\"#{broken.size}\">"
broken.each do |file, text|
  lines << "<testcase classname=\"\" name=#{escape[file]} file=#{escape[file]}><error message=\"collection failure\">#{text.encode("UTF-8", invalid: :replace, undef: :replace).gsub(/[^\t\n\u0020-\uD7FF\uE000-\uFFFD]/, "?").encode(xml: :text)}</error></testcase>"
end
reporter.results.sort_by { |result| [result.klass.to_s, result.name] }.each do |result|
  file = result.source_location.first.to_s.delete_prefix("#{root}/")
  body = if result.skipped? then "<skipped/>"
         elsif result.passed? then ""
         else "<failure message=#{escape[result.failures.map(&:message).join("\n")]}/>"
         end
  lines << "<testcase classname=#{escape[result.klass]} name=#{escape[result.name]} file=#{escape[file]}>#{body}</testcase>"
end
lines << "</testsuite>"
File.write(report, lines.join("\n"))
$stdout.flush
exit!(failed.empty? && broken.empty? ? 0 : 1)
