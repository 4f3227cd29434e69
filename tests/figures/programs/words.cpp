// A C++ program to be profiled: templates, std::map, std::unordered_map, std::sort, strings, virtual calls.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <unordered_map>
#include <vector>

namespace text {

class Random {
  public:
    explicit Random(std::uint64_t seed) : state(seed) {}
    std::uint64_t next() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return state;
    }

  private:
    std::uint64_t state;
};

// Words of letters as frequent as their rank is low.
__attribute__((noinline)) std::vector<std::string> words(std::size_t count, Random &random) {
    std::vector<std::string> made;
    made.reserve(count);
    for (std::size_t i = 0; i < count; i++) {
        std::uint64_t rank = random.next() % (1 + random.next() % 20000);
        std::string word;
        do {
            word.push_back(static_cast<char>('a' + rank % 26));
            rank /= 26;
        } while (rank != 0);
        made.push_back(word);
    }
    return made;
}

} // namespace text

namespace tally {

// Counts words in any kind of map.
template <typename Map>
__attribute__((noinline)) Map count(const std::vector<std::string> &words) {
    Map counts;
    for (const auto &word : words) {
        counts[word]++;
    }
    return counts;
}

// The most frequent entries of a map, by frequency, then by name.
template <typename Map>
__attribute__((noinline)) std::vector<std::pair<std::string, int>> top(const Map &counts,
                                                                        std::size_t most) {
    std::vector<std::pair<std::string, int>> all(counts.begin(), counts.end());
    std::sort(all.begin(), all.end(), [](const auto &a, const auto &b) {
        return a.second != b.second ? a.second > b.second : a.first < b.first;
    });
    all.resize(std::min(most, all.size()));
    return all;
}

} // namespace tally

namespace shape {

struct Shape {
    virtual ~Shape() = default;
    virtual double area() const = 0;
};

struct Circle final : Shape {
    explicit Circle(double radius) : radius(radius) {}
    __attribute__((noinline)) double area() const override { return 3.141592653589793 * radius * radius; }
    double radius;
};

struct Polygon final : Shape {
    explicit Polygon(int corners) {
        for (int i = 0; i < corners; i++) {
            x.push_back(std::cos(i * 6.283185307179586 / corners));
            y.push_back(std::sin(i * 6.283185307179586 / corners));
        }
    }
    __attribute__((noinline)) double area() const override {
        double sum = 0;
        for (std::size_t i = 0, j = x.size() - 1; i < x.size(); j = i++) {
            sum += x[j] * y[i] - x[i] * y[j];
        }
        return sum / 2;
    }
    std::vector<double> x, y;
};

__attribute__((noinline)) double total(const std::vector<std::unique_ptr<Shape>> &shapes) {
    return std::accumulate(shapes.begin(), shapes.end(), 0.0,
                           [](double sum, const auto &shape) { return sum + shape->area(); });
}

} // namespace shape

// Edit distance, one row at a time.
__attribute__((noinline)) int distance(const std::string &a, const std::string &b) {
    std::vector<int> row(b.size() + 1);
    std::iota(row.begin(), row.end(), 0);
    for (std::size_t i = 0; i < a.size(); i++) {
        int diagonal = row[0];
        row[0] = static_cast<int>(i) + 1;
        for (std::size_t j = 0; j < b.size(); j++) {
            int substituted = diagonal + (a[i] != b[j]);
            diagonal = row[j + 1];
            row[j + 1] = std::min({substituted, diagonal + 1, row[j] + 1});
        }
    }
    return row.back();
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? std::atoi(argv[1]) : 10;
    text::Random random(42);
    std::vector<std::unique_ptr<shape::Shape>> shapes;
    for (int i = 0; i < 2000; i++) {
        if (i % 2 == 0) {
            shapes.push_back(std::make_unique<shape::Circle>(i));
        } else {
            shapes.push_back(std::make_unique<shape::Polygon>(3 + i % 200));
        }
    }
    double area = 0;
    long apart = 0;
    for (int round = 0; round < rounds; round++) {
        auto words = text::words(200000, random);
        auto ordered = tally::top(tally::count<std::map<std::string, int>>(words), 200);
        auto hashed = tally::top(tally::count<std::unordered_map<std::string, int>>(words), 200);
        for (const auto &a : ordered) {
            for (const auto &b : hashed) {
                apart += distance(a.first, b.first);
            }
        }
        for (int i = 0; i < 100; i++) {
            area += shape::total(shapes);
        }
    }
    std::printf("%ld %.0f\n", apart, area);
}
